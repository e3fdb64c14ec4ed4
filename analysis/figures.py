"""Figures, and the numbers in them.

Every figure is a `matplotlib.figure.Figure` of its own: no pyplot, no global settings, so that a
figure never depends on what was drawn before it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from analysis.compare import GROUP, OPTION, finite_evaluations, paradigm_order
from analysis.statistics import t_interval
from study.results import HEATMAP_EDGES

METRIC_LABELS = {"saif": "SAIF (% of instances)", "accuracy": "accuracy (% of instances)"}

# Okabe and Ito's colours, which colour-blind readers can tell apart; line style and marker say
# the same again for print in grey.
_STYLES = {
    "hard": ("#D55E00", ":", "s"),
    "soft": ("#0072B2", "--", "o"),
    "hybrid": ("#009E73", "-.", "^"),
    "lvml": ("#CC79A7", "-", "D"),
}
_OTHER_STYLES = (("#000000", "-", "v"), ("#E69F00", "--", "P"), ("#56B4E9", "-.", "X"))
_BINS = len(HEATMAP_EDGES) - 1


def mean_heatmaps(
    at_budget: pd.DataFrame, choice: pd.DataFrame, split: str = "test"
) -> dict[str, NDArray[np.float64]]:
    """Mean over seeds of the chosen options' heat maps, of one (task, m).

    Args:
        at_budget: as `analysis.equal_compute` gives it.
        choice: as `analysis.choose` gives it.
        split: name of the split.

    Returns:
        Paradigm -> (5, 5) fractions of the instances, axis 0 = a_z, axis 1 = s_y. Diverged seeds
        have no heat map and are left out; a paradigm whose seeds all diverged is absent.
    """
    rows = at_budget[(at_budget["split"] == split) & ~at_budget["diverged"]]
    rows = rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION)
    means = {}
    for name in paradigm_order(rows["paradigm"]):
        heatmaps = rows.loc[rows["paradigm"] == name, "heatmap"].tolist()
        means[name] = np.mean(heatmaps, axis=0).reshape(_BINS, _BINS)
    return means


def learning_curve(
    evaluations: pd.DataFrame, metric: str, split: str = "test", confidence: float = 0.95
) -> pd.DataFrame:
    """A metric against compute: mean and t interval over the seeds of each paradigm.

    A diverged cell counts from its first missing evaluation on as in the comparison table: SAIF
    0, accuracy 1/C.

    Args:
        evaluations: of one (task, m) and one option a paradigm, as
            `analysis.compare.Comparison.evaluations` holds them.
        metric: `saif` or `accuracy`.
        split: name of the split.
        confidence: of the intervals, in (0, 1).

    Returns:
        One row a (paradigm, budget_fraction): `compute_flops` (mean over seeds), `num_seeds`,
        `mean`, `low`, `high` (fractions, bounds NaN when n < 2).
    """
    if metric not in METRIC_LABELS:
        raise ValueError(f"metric must be one of {', '.join(METRIC_LABELS)}, got {metric!r}")
    finite = finite_evaluations(evaluations)
    records = []
    for name in paradigm_order(evaluations["paradigm"]):
        group = evaluations[evaluations["paradigm"] == name]
        cells = group.drop_duplicates("cell_id").sort_values("seed")
        diverged = (cells["status"] == "diverged").to_numpy()
        floor = 0.0 if metric == "saif" else 1 / cells["num_classes"].to_numpy(float)
        rows = finite[(finite["paradigm"] == name) & (finite["split"] == split)]
        for fraction, point in rows.groupby("budget_fraction"):
            values = point.set_index("cell_id")[metric].reindex(cells["cell_id"])
            counted = np.where(values.isna() & diverged, floor, values.to_numpy(float))
            counted = counted[values.notna().to_numpy() | diverged]
            mean, low, high = t_interval(counted, confidence)
            records.append(
                {
                    "paradigm": name,
                    "budget_fraction": fraction,
                    "compute_flops": float(point["compute_flops"].mean()),
                    "num_seeds": len(counted),
                    "mean": mean,
                    "low": low,
                    "high": high,
                }
            )
    columns = ["paradigm", "budget_fraction", "compute_flops", "num_seeds", "mean", "low", "high"]
    return pd.DataFrame(records, columns=columns)


def heatmap_figure(heatmaps: Mapping[str, NDArray[np.float64]], title: str) -> Figure:
    """Focus-prediction heat maps (section 2.4), one panel a paradigm, two panels a row.

    Args:
        heatmaps: paradigm -> (5, 5) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        title: above the panels; of a single panel, behind the paradigm's name.

    Returns:
        a_z on x, s_y on y upwards, cells in % of the instances; grey alone carries the shading
        and the outlined cell at the top right is SAIF.

    Raises:
        ValueError: no heat map, or one of another shape.
    """
    if not heatmaps:
        raise ValueError("heatmaps must hold at least one heat map, got none")
    columns = min(2, len(heatmaps))
    rows = math.ceil(len(heatmaps) / columns)
    figure = Figure(figsize=(0.3 + 3.3 * columns, 0.5 + 3.3 * rows), layout="constrained")
    if len(heatmaps) > 1:
        figure.suptitle(title, fontsize=11, parse_math=False)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, name in zip(axes, paradigm_order(heatmaps), strict=False):
        label = name if len(heatmaps) > 1 else f"{name}, {title}"
        _draw_heatmap(panel, label, np.asarray(heatmaps[name], dtype=np.float64))
    for unused in axes[len(heatmaps) :]:
        unused.remove()
    return figure


def compute_figure(
    evaluations_of_chosen: pd.DataFrame,
    metric: str,
    split: str = "test",
    confidence: float = 0.95,
) -> Figure:
    """A metric against training compute: one line a paradigm, a band for the t interval.

    Args:
        evaluations_of_chosen: see `learning_curve`.
        metric: `saif` or `accuracy`.
        split: name of the split.
        confidence: of the band, in (0, 1).
    """
    curve = learning_curve(evaluations_of_chosen, metric, split, confidence)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    largest = curve["compute_flops"].max()
    exponent = math.floor(math.log10(largest)) if largest > 0 else 0
    others = iter(_OTHER_STYLES * len(curve))
    for name, line in curve.groupby("paradigm", sort=False):
        colour, style, marker = _STYLES.get(str(name)) or next(others)
        x = line["compute_flops"] / 10.0**exponent
        axes.plot(
            x,
            100 * line["mean"],
            color=colour,
            linestyle=style,
            marker=marker,
            markersize=4.5,
            label=f"{name} (n={line['num_seeds'].max()})",
        )
        axes.fill_between(x, 100 * line["low"], 100 * line["high"], color=colour, alpha=0.15, lw=0)
    axes.set_xlabel(f"training compute ($10^{{{exponent}}}$ FLOPs)")
    axes.set_ylabel(METRIC_LABELS[metric])
    low, high = axes.get_ylim()  # an interval may reach beyond what a share can be
    axes.set_ylim(max(low, -2), min(high, 102))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(curve):
        axes.legend(frameon=False, fontsize=9)
    figure.supxlabel(
        f"{split} split; mean over n seeds, band: {confidence * 100:g} % t interval (from n=2)",
        fontsize=8,
    )
    return figure


def figure_png(figure: Figure, dpi: int = 160) -> bytes:
    """The figure as a PNG picture; the same figure gives the same bytes."""
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=dpi, metadata={"Software": None})
    return sink.getvalue()


def _draw_heatmap(axes: Axes, label: str, heatmap: NDArray[np.float64]) -> None:
    if heatmap.shape != (_BINS, _BINS):
        raise ValueError(f"a heat map must be ({_BINS}, {_BINS}), got {heatmap.shape}")
    axes.imshow(heatmap.T, origin="lower", cmap="Greys", vmin=0, vmax=1)
    for a_z in range(_BINS):
        for s_y in range(_BINS):
            share = heatmap[a_z, s_y]
            axes.text(
                a_z,
                s_y,
                f"{100 * share:.1f}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if share > 0.5 else "black",
            )
    corner = _BINS - 1.5
    axes.add_patch(
        Rectangle(
            (corner, corner), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.5, clip_on=False
        )
    )
    axes.set_title(label, fontsize=10, parse_math=False)
    edges = [f"{edge:g}" for edge in HEATMAP_EDGES]
    axes.set_xticks(np.arange(_BINS + 1) - 0.5, edges)
    axes.set_yticks(np.arange(_BINS + 1) - 0.5, edges)
    axes.set_xlabel("foreground attention $a_z$")
    axes.set_ylabel("true-class score $s_y$")
