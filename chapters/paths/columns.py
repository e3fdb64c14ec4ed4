"""The columns of results that cells of the chapter have."""

from __future__ import annotations

from collections.abc import Mapping

from chapters.paths.posterior.posterior_cell import PosteriorCell
from study.cell.column_groups import NUMBER, NUMBERS, TEXT, TEXTS, WHOLES, Group, of_axes
from study.cell.declared import axes_of

_AXES = axes_of(PosteriorCell)

GROUPS: Mapping[str, Group] = {
    "Of `attention-paths` and `one-shot`: network and method": Group(
        "set up",
        {
            **of_axes(_AXES),
            "network_width": (NUMBER, _AXES["width"].column),  # it may be infinite
            "variant": (TEXT, "of the theory"),
        },
    ),
    "Of a theory: what was found": Group(
        "found",
        {
            "path_names": (TEXTS, "names of the rows and columns of U"),
            "order_parameter": (NUMBERS, "U, row by row"),
            "order_parameter_error": (NUMBERS, "its Monte Carlo standard error"),
            "overlaps": (
                NUMBERS,
                "absolute cosines between the training labels and the principal components of the "
                "kernel, by falling eigenvalue",
            ),
            "residual": (NUMBER, "how far the solution is from a stationary point"),
            "r_hat": (NUMBER, "how well the chains agree: the largest over all sampled numbers"),
            "effective_sample_size": (NUMBER, "the smallest over all sampled numbers"),
        },
    ),
    "Of the heads of a trained network": Group(
        "found",
        {
            "network": (
                TEXT,
                "id of the cell that trained the network, `networks/<id>.safetensors`",
            ),
            "temperature_choice": (TEXT, "how the temperature was chosen"),
            "temperatures": (NUMBERS, "the candidates"),
            "head_scores": (NUMBERS, "layer by layer; the higher, the more a head matters"),
            "removal_order": (
                WHOLES,
                "the heads, numbered from 0 through all layers, in the order of their removal; "
                "missing, like the scores, where a rule gives none",
            ),
        },
    ),
    "Of a predictor": Group(
        "evaluated",
        {
            "accuracy_error": (NUMBER, "Monte Carlo standard error"),
            "accuracy_diagonal": (NUMBER, "accuracy without the terms between different paths"),
            "predictor_mean": (NUMBERS, "mean of the output for each input"),
            "predictor_variance": (NUMBERS, "variance of the output for each input"),
            "predictor_mean_error": (NUMBERS, "Monte Carlo standard error of the mean"),
        },
    ),
    "Of pruned networks": Group(
        "evaluated",
        {
            "accuracy_without_head": (
                NUMBERS,
                "accuracy without each head alone, layer by layer",
            ),
            "accuracy_pruned": (
                NUMBERS,
                "accuracy without the first k heads of `removal_order`, k = 0, 1, ..., until each "
                "layer has one left; without an order the mean of many, or the best of all "
                "subsets",
            ),
            "accuracy_pruned_reverse": (NUMBERS, "the same in reverse order"),
        },
    ),
}
"""Heading in docs/results.md -> columns."""
