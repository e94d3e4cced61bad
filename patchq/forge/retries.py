"""Which answers of GitHub are asked for again, and how long is waited in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from github import GithubRetry

LIMITS = (403, 429)
READS = ("GET", "HEAD")


@dataclass(frozen=True)
class Patience:
    """How often is asked again, and how long is waited at most (seconds)."""

    tries: int = 4
    backoff: float = 2.0
    secondary: float = 60.0
    longest: float = 600.0
    timeout: int = 30


PATIENCE = Patience()


def retries(
    patience: Patience, wait: Callable[[float, str], None], *, writes: bool = False
) -> GithubRetry:
    """PyGithub's retries, less its traps; `wait` sleeps so many seconds, and says why.

    `writes`: only limits are waited for where something may have been done already.
    """
    from github import GithubRetry

    class Patient(GithubRetry):
        def sleep(self, response: Any = None) -> None:
            if response is None:
                return wait(self.get_backoff_time(), "it cannot be reached")
            seconds = self.get_retry_after(response) or self.get_backoff_time()
            why = "it limits requests" if response.status in LIMITS else "it fails"
            return wait(seconds, f"{why} (status {response.status})")

        def is_retry(self, method: str, status_code: int, *more: Any, **named: Any) -> bool:
            if writes and method.upper() not in READS:
                return status_code in LIMITS
            return bool(super().is_retry(method, status_code, *more, **named))

    return Patient(
        total=patience.tries,
        connect=1,
        read=1,
        backoff_factor=patience.backoff,
        status_forcelist=[429, *range(500, 600)],
        secondary_rate_wait=patience.secondary,
        max_rate_limit_wait=patience.longest,
        **({"allowed_methods": READS} if writes else {}),
    )
