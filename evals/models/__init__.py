"""Suites and question sets (tracked), and runs with all that happened in them."""

from evals.models.question_sets import Question, QuestionSet, RetrievalReport
from evals.models.runs import Attempt, Run, Spend, Turn, Verdict
from evals.models.suites import Probe, Suite, SuiteRequirement
from evals.models.trials import Trial, TrialAnswer

__all__ = [
    "Attempt",
    "Probe",
    "Question",
    "QuestionSet",
    "RetrievalReport",
    "Run",
    "Spend",
    "Suite",
    "SuiteRequirement",
    "Trial",
    "TrialAnswer",
    "Turn",
    "Verdict",
]
