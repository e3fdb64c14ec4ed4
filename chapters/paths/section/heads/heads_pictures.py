"""Figure 3 (b to f) of the paper from a setting of trained networks."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.section.picture import Picture
from chapters.paths.figures.head_scores import pruning_figure, scores_figure
from chapters.paths.figures.path_figures import accuracy_figure, order_parameter_figure
from chapters.paths.heads.heads_cell import BOUND
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY
from chapters.paths.section.heads.heads_orders import ORDER, REVERSE, order_text, shown_orders
from chapters.paths.section.heads.heads_published import numbers
from chapters.paths.section.heads.heads_scores import by_score, ranks
from chapters.paths.section.heads.heads_settings import Trained, solved, trained
from chapters.paths.section.means import mean_order_parameter
from chapters.paths.section.networks import line, path_text
from chapters.paths.section.path_pictures import alignment, marks, picture

LEADING_OF_TRAINED = 50
"""Principal components that figure 3d of the paper shows."""


def pictures(setting: Trained) -> list[Picture]:
    """Accuracy, order parameter, alignment, scores and pruning, as far as there are numbers."""
    return [
        *_accuracy(setting),
        *_order_parameter(setting),
        *alignment(setting, "heads-alignment", LEADING_OF_TRAINED),
        *_scores(setting),
        *_pruning(setting),
    ]


def _accuracy(setting: Trained) -> Iterator[Picture]:
    networks, rates = (
        table[table["num_seeds"] > 0] for table in (solved(setting), trained(setting))
    )
    theory = line(networks, THEORY)
    if theory.empty:
        return
    names = [f"trained network (lr {rate:g})" for rate in rates["lr"]]
    names = names if len(names) > 1 else ["trained network"] * len(names)
    figure = accuracy_figure(
        {"theory": marks(theory, "accuracy")},
        dict(zip(["limit"], 100 * line(networks, LIMIT)["accuracy"], strict=False)),
        dict(zip(names, 100 * rates["accuracy_test"], strict=True)),
    )
    counts = [*networks["num_seeds"], *rates["num_seeds"]]
    yield picture(figure, "heads-accuracy", counts=counts)


def _order_parameter(setting: Trained) -> Iterator[Picture]:
    """Theory at the reference width."""
    ordered, name = by_score(setting), setting.reference_text
    matrix = mean_order_parameter(ordered, THEORY, setting.reference)
    if matrix is not None:
        rows = ordered.of(THEORY, setting.reference)
        names = [*map(path_text, rows["path_names"].iloc[0])]
        figure = order_parameter_figure({"": [matrix]}, [name], names)
        facts = {"name": name, "names": names, "num_networks": len(rows)}
        yield picture(figure, "heads-order-parameter", **facts)


def _scores(setting: Trained) -> Iterator[Picture]:
    table, name = ranks(setting), setting.reference_text
    published = numbers(setting).query("measure == 'drop'")["published"]
    if len(table):
        by_rank = marks(table, "score", "rank", 1), marks(table, "drop", "rank")
        figure = scores_figure(f"score ({name})", *by_rank, [*(100 * published)])
        facts = {"name": name, "counts": table["num_seeds"], "published": len(published)}
        yield picture(figure, "heads-scores", **facts)


def _pruning(setting: Trained) -> Iterator[Picture]:
    shown = shown_orders(setting)
    if len(shown):
        lines = {}
        for _, rows in shown.groupby(ORDER, sort=False):
            first = rows.iloc[0].to_dict()
            key = REVERSE if first["order"] == REVERSE else str(first["method"])
            lines[key] = order_text(first), marks(rows, "accuracy", "removed")
        figure = pruning_figure(lines, 100 / setting.num_classes)
        facts = {"counts": shown["num_seeds"], "has_bound": BOUND in lines}
        yield picture(figure, "heads-pruning", **facts)
