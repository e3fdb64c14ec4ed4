"""What theory says and what was found, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.attention_paths.means import limits, line
from analysis.attention_paths.networks import ALL, DENOISING, GOOD, THEORY
from analysis.attention_paths.settings import Setting
from analysis.attention_paths.words import (
    LONGER_CHAINS,
    Row,
    network_text,
    paths_text,
    points_text,
)
from analysis.words import known, listed, percent

THEORY_SAYS = (
    "The network is a stack of attention heads whose attention is fixed and whose values are "
    "linear. A path takes one head a layer. What the network learns is how paths work together: "
    "theory has an order parameter U, one number for each pair of paths, that says how much their "
    "weights overlap. In the limit of infinite width U is the identity: each path is a kernel "
    "of its own and all count the same. At finite width U weighs paths by what they bring for the "
    "task and uses pairs of them together. Nothing is trained here: theory is solved, and samples "
    "of the posterior show whether it is right."
)
"""Above all sections."""


def found(networks: pd.DataFrame, agreement: pd.DataFrame) -> str:
    """One paragraph on one setting, of the numbers that there are; empty without any.

    Args:
        networks: as `analysis.attention_paths.means.networks` gives them.
        agreement: as `analysis.attention_paths.agreement.agreement` gives it.
    """
    theory = line(networks, THEORY).to_dict("records")
    limit = {str(row["paths"]): row for row in limits(networks).to_dict("records")}
    return " ".join([*_of_theory(theory), *_of_limit(limit), *_of_sampling(agreement)])


def warnings(setting: Setting) -> list[str]:
    """Sentences on what is missing from the numbers, and why."""
    texts = []
    diverged = [
        f"{network_text(row)} seed {row['seed']} ({row['status_reason'] or 'no reason recorded'})"
        for row in setting.cells[setting.cells["status"] == "diverged"].to_dict("records")
    ]
    if diverged:
        texts.append(f"Diverged cells are in no mean: {', '.join(diverged)}.")
    unconverged = Counter(map(network_text, setting.unconverged.to_dict("records")))
    if unconverged:
        names = [f"{name} ({count} of its seeds)" for name, count in unconverged.items()]
        texts.append(
            f"Chains that have not converged are in no mean: {', '.join(names)}; {LONGER_CHAINS}"
        )
    shorter = len(setting.recorded) - len(setting.cells)
    if shorter:
        texts.append(
            "Of a network that was sampled several times, the cell with the most draws is shown; "
            f"not shown: {shorter}."
        )
    return texts


def _of_theory(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    first, last = rows[0], rows[-1]
    text = f"By theory the network of N={first['network_width']:g} classifies {_share(first)} of "
    text += f"the test sequences rightly{_above_limit(first)}"
    if len(rows) > 1:
        text += f"; that of N={last['network_width']:g} {_share(last)}{_above_limit(last)}"
    sentences = [f"{text}."]
    if known(first["interplay"]):
        sentences.append(
            f"Without the terms of pairs of paths, that of N={first['network_width']:g} has "
            f"{percent(first['accuracy_diagonal'])} % ({points_text(-first['interplay'])}, "
            "paired by seed)."
        )
    return sentences


def _of_limit(rows: Mapping[str, Row]) -> list[str]:
    texts = [
        f"{percent(rows[paths]['accuracy'])} % with {paths_text(paths)}"
        for paths in (ALL, GOOD, DENOISING)
        if paths in rows
    ]
    return [f"The limit of infinite width has {listed(texts)}."] if texts else []


def _of_sampling(agreement: pd.DataFrame) -> list[str]:
    if agreement.empty or not known(worst := agreement["predictor_error"].max()):
        return []
    where = " at the worst of the widths" if len(agreement) > 1 else ""
    return [
        "Where networks were sampled, theory's mean predictor differs from the sampled one by "
        f"{percent(worst)} % of it{where}."
    ]


def _above_limit(row: Row) -> str:
    """``, 11.3 points more than the limit (10.4 to 12.2, paired by seed, n=6)``."""
    gain, *bounds = (row[f"gain{end}"] for end in ("", "_low", "_high"))
    if not known(gain):
        return ""
    amount, side = percent(abs(gain)), "more" if gain >= 0 else "less"
    text = f"{amount} points {side} than the limit"
    if float(amount) == 0:
        text = "as many as the limit to a tenth of a point"
    elif gain < 0:
        bounds = [-bound for bound in reversed(bounds)]
    said = "{} to {}, ".format(*map(_of_points, bounds)) if all(map(known, bounds)) else ""
    return f", {text} ({said}paired by seed, n={row['num_seeds']})"


def _of_points(share: float) -> str:
    """``11.3``; 0 without a sign."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def _share(row: Row) -> str:
    """``96.4 % (95.1 to 97.7, n=10)``."""
    low, high = row["accuracy_low"], row["accuracy_high"]
    bounds = f"{percent(low)} to {percent(high)}, " if known(low) else ""
    return f"{percent(row['accuracy'])} % ({bounds}n={row['num_seeds']})"
