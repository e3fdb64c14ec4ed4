"""What theory says and what was found, in plain words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.attention_paths.numbers import limits, line
from analysis.attention_paths.settings import ALL, GOOD, THEORY, Setting
from analysis.attention_paths.words import signed
from analysis.words import known, percent, tally

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


def found(setting: Setting, networks: pd.DataFrame, agreement: pd.DataFrame) -> str:
    """One paragraph on one setting, of the numbers that there are."""
    theory, ends = line(networks, THEORY), limits(networks)
    of_paths = {str(row["paths"]): row for row in ends.to_dict("records")}
    sentences = []
    if len(theory):
        first, last = theory.iloc[0].to_dict(), theory.iloc[-1].to_dict()
        text = f"At N={first['network_width']:g} the network classifies {_share(first)} of the "
        text += "test sequences rightly"
        if len(theory) > 1:
            text += f", at N={last['network_width']:g} {_share(last)}"
        sentences.append(text + _limit(of_paths) + ".")
        if known(first["interplay"]):
            sentences.append(
                f"Without the terms of pairs of paths, the network of N="
                f"{first['network_width']:g} has {percent(first['accuracy_diagonal'])} % "
                f"({signed(-first['interplay'])} points)."
            )
    elif ALL in of_paths:
        sentences.append(f"Theory was not solved at a finite width{_limit(of_paths)}.")
    if len(agreement) and known(worst := agreement["predictor_error"].max()):
        sentences.append(
            "Where it was sampled, theory's mean predictor is off by at most "
            f"{percent(worst)} % on average."
        )
    return " ".join(sentences)


def warnings(setting: Setting) -> list[str]:
    """Sentences on what is missing from the numbers, and why."""
    texts = []
    diverged = setting.cells[setting.cells["status"] == "diverged"]
    if len(diverged):
        names = [
            f"{row['method']} N={row['network_width']:g} seed {row['seed']} "
            f"({row['status_reason'] or 'no reason recorded'})"
            for row in diverged.to_dict("records")
        ]
        texts.append(f"Diverged cells are in no mean: {', '.join(names)}.")
    if len(setting.unconverged):
        counts = tally(
            Counter(
                f"{row['method']} N={row['network_width']:g}"
                for row in setting.unconverged.to_dict("records")
            )
        )
        texts.append(f"Chains that have not converged are in no mean: {counts}.")
    if shorter := len(setting.recorded) - len(setting.cells):
        texts.append(
            f"{shorter} cells are not shown: their networks were sampled with more draws, too."
        )
    return texts


def _limit(of_paths: Mapping[str, Mapping[Any, Any]]) -> str:
    if ALL not in of_paths:
        return ""
    text = f"; in the limit of infinite width it is {_share(of_paths[ALL])}"
    if GOOD in of_paths:
        text += f" ({_share(of_paths[GOOD])} with the good path alone)"
    return text


def _share(row: Mapping[Any, Any]) -> str:
    """``96.4 % (95.1 to 97.7, n=10)``."""
    low, high = row["accuracy_low"], row["accuracy_high"]
    bounds = f"{percent(low)} to {percent(high)}, " if math.isfinite(low) else ""
    return f"{percent(row['accuracy'])} % ({bounds}n={row['num_seeds']})"
