"""The temperatures that theory tries, and how one of them is chosen."""

from __future__ import annotations

TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
"""Ten from .01 to 1.5, as published; the paper's values between the ends are not known here."""

OF_THE_LIMIT = TEMPERATURES[1::2]
"""Five of the ten, among which the published limit is chosen; which five is not known here."""

VALIDATION, PUBLISHED, FIXED = CHOICES = ("validation", "published", "fixed")
"""How: by the best accuracy on validation episodes; the paper's way, by the best accuracy on the
very test episodes that are reported, the limit's among five only; or a given one."""
