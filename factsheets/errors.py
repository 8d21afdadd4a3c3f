"""The base of every "no": a stable code and one sentence for people."""


class Refused(Exception):
    """Something asked for will not be done; the sentence says why and what to do next.

    Raised before anything is written, or inside a transaction that it rolls back.
    """

    code = "refused"

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)
