"""Keys of programs: made once, shown once, found by their hash, revoked for good.

A key is `mun_<prefix>_<secret>`. The prefix finds its row; the secret, 256
random bits, is compared by its SHA-256 and kept nowhere. A hash made to be
slow would guard nothing more: no list of guesses reaches 256 bits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from factsheets import canonical, delivery
from factsheets.errors import Refused
from factsheets.models import ApiKey, Sheet

#: What every key begins with, so that it is known for one wherever it turns up.
MARK = "mun"

LONGEST_NAME = 100

_TOKEN = re.compile(rf"{MARK}_([0-9a-f]{{8}})_([0-9a-f]{{64}})")


class KeyRefused(Refused):
    """No key, or one that opens nothing: unknown, revoked, past its last day."""

    code = "key-refused"


class ScopeRefused(Refused):
    """A good key, made for something else."""

    code = "scope-refused"


class KeyNotMade(Refused):
    """A key that cannot be made as asked."""

    code = "key-not-made"


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key, and the one chance to read it."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        # Whatever is printed or logged of it must not hold the secret.
        return f"Issued({self.key})"


def issue(
    *,
    sheet: Sheet,
    name: str,
    scopes: Collection[str],
    expires_on: date | None,
    by: User,
    now: datetime,
    today: date,
) -> Issued:
    """Make a key to a sheet. Raises KeyNotMade."""
    named = canonical.normalise_line(name)
    if not named or len(named) > LONGEST_NAME:
        raise KeyNotMade(
            f"Name the bot or program that will hold the key, in at most {LONGEST_NAME} characters."
        )
    unknown = set(scopes) - set(ApiKey.Scope.values)
    if not scopes or unknown:
        raise KeyNotMade(f"Choose what the key opens: {', '.join(ApiKey.Scope.values)}.")
    if expires_on is not None and expires_on < today:
        raise KeyNotMade(f"{expires_on} has passed; choose a day to come, or none.")
    prefix, secret = secrets.token_hex(4), secrets.token_hex(32)
    with transaction.atomic():
        # Of two at once the second sees the first.
        Sheet.objects.select_for_update(no_key=True, of=("self",)).get(pk=sheet.pk)
        if sheet.api_keys.filter(name=named, revoked_at__isnull=True).exists():
            raise KeyNotMade(
                f"A key of the name {named} is in use; choose another, or revoke that one first."
            )
        key = ApiKey.objects.create(
            sheet=sheet,
            name=named,
            prefix=prefix,
            key_hash=_hash(secret),
            scopes=[scope for scope in ApiKey.Scope.values if scope in scopes],
            created_at=now,
            created_by=by,
            expires_on=expires_on,
        )
    return Issued(key, f"{MARK}_{prefix}_{secret}")


def revoke(key: ApiKey, *, by: User, now: datetime) -> None:
    """Have a key open nothing any more, from this moment on. Once is enough."""
    ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now, revoked_by=by)


def find(token: str, *, scope: str, sheet: Sheet | None, today: date) -> ApiKey:
    """The key that a token is, and note the day.

    Raises KeyRefused for one that opens nothing, then NotFound where it is not
    a key to this sheet, just as where there is no such sheet, then ScopeRefused.
    """
    key = _opening(token, today)
    if key is None:
        raise KeyRefused(
            "Send a key to this sheet, as Authorization: Bearer mun_…; "
            "the one sent, if any, is unknown, revoked or past its last day."
        )
    if sheet is None or key.sheet_id != sheet.pk:
        raise delivery.unknown()
    if scope not in key.scopes:
        raise ScopeRefused(f"This key does not open {scope}; ask for one that does.")
    _note_use(key, today)
    return key


def opens(token: str, *, scope: str, sheet: Sheet, today: date) -> bool:
    """Whether a token opens something of a sheet. Whoever holds none learns nothing."""
    try:
        find(token, scope=scope, sheet=sheet, today=today)
    except Refused:
        return False
    return True


def _opening(token: str, today: date) -> ApiKey | None:
    found = _TOKEN.fullmatch(token)
    if found is None:
        return None
    prefix, secret = found.groups()
    key = ApiKey.objects.select_related("sheet").filter(prefix=prefix).first()
    if key is None or not hmac.compare_digest(_hash(secret), key.key_hash):
        return None
    return key if key.is_open_on(today) else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _note_use(key: ApiKey, today: date) -> None:
    if key.last_used_on is None or key.last_used_on < today:
        earlier = Q(last_used_on__isnull=True) | Q(last_used_on__lt=today)
        ApiKey.objects.filter(earlier, pk=key.pk).update(last_used_on=today)
