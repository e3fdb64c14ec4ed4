"""The paper's claims, each a test on results: does it hold on this data?

`base` says what a claim is and how an interval decides it, `attention` tests the claims about
comparisons, `fixed_focus` those about a classifier under a fixed focus, and `linear_orthogonal`
the one about trajectories.
"""

from analysis.claims.attention import (
    LEAD,
    NEARLY_EMPTY,
    STALLED,
    claims,
    claims_frame,
    middle_share,
)
from analysis.claims.base import Claim, Finding, Verdict

__all__ = [
    "LEAD",
    "NEARLY_EMPTY",
    "STALLED",
    "Claim",
    "Finding",
    "Verdict",
    "claims",
    "claims_frame",
    "middle_share",
]
