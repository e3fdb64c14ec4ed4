"""Theory beside sampling: networks that are solved and sampled, not trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from analysis.section.section import Chapter, Question
from chapters.paths.section import beside, means
from chapters.paths.section.networks import NETWORK, network_text, of_network
from chapters.paths.section.paths_section import Part, Paths, PathsSection
from chapters.paths.section.settings import Setting, read
from study.results import Results

_PARAMS = ("variant", "sigma_perp", "n", "tokens", "temperature", "heads")
_AGREEMENT = ["predictor_error", "accuracy_difference", "r_hat", "effective_sample_size"]


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[PathsSection]:
    """One section a setting: plain, noisy, own.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `chapters.paths.section.settings.read`.
    """
    return [PathsSection(_THEORY, each) for each in read(results, results.cells(cell_ids))]


def _parts(setting: Setting) -> Iterator[Part]:
    """The networks; sampled ones with how theory agrees."""
    agreement, first = means.agreement(setting), setting.first
    for row in means.networks(setting).to_dict("records"):
        metrics = {name: float(row[name]) for name in means.MEASURES}
        metrics["n"] = float(row["num_seeds"])
        network = of_network(agreement, *(row[name] for name in NETWORK))
        for other in network.to_dict("records"):
            metrics |= {name: float(other[name]) for name in _AGREEMENT}
        params = {name: row[name] for name in NETWORK} | {name: first[name] for name in _PARAMS}
        texts = {k: v if isinstance(v, str) else f"{v:g}" for k, v in params.items()}
        yield Part(network_text(row).replace(",", ""), texts, metrics)


_THEORY = Paths(
    Chapter("attention paths", "Attention paths", has_published=True),
    study="attention-paths",
    says=(
        "The network is a stack of attention heads whose attention is fixed and whose values are "
        "linear. A path takes one head a layer. What the network learns is how paths work "
        "together: theory has an order parameter U, one number for each pair of paths, that says "
        "how much their weights overlap. In the limit of infinite width U is the identity: each "
        "path is a kernel of its own and all count the same. At finite width U weighs paths by "
        "what they bring for the task and uses pairs of them together. Nothing is trained here: "
        "theory is solved, and samples of the posterior show whether it is right."
    ),
    method=(
        "Theory: the order parameter U at the saddle point of its action, found by Newton's "
        "method; its predictor is that of a Gaussian process whose kernel U combines from those "
        "of pairs of paths. Limit: the same with U the identity.",
        "Sampling: draws of U from its exact posterior, with the network's function integrated "
        "out (slice); R-hat is the largest of all quantities that were followed, the number of "
        "effective draws the smallest.",
        "Accuracy is that of the sign of the mean predictor, loss the negative log density of the "
        "label under the predictive distribution. Means and t intervals are over seeds; a seed "
        "draws the data and the random heads, so networks of one seed share both, and differences "
        "are paired.",
        "Distance from the limit and error of the mean: root mean square over the test split, as "
        "a share of the reference's root mean square.",
    ),
    tables_of={
        "attention-paths-networks": means.networks,
        "attention-paths-agreement": means.agreement,
        "attention-paths-order-parameters": means.order_parameters,
        "attention-paths-overlaps": means.overlaps,
        "attention-paths-prototype": beside.beside_prototype,
    },
    parts=_parts,
)
