"""What people type: the options and the help of the command, known without NumPy."""

from __future__ import annotations

from study.cell.declared import Number
from study.terminal.command import Parser
from study.terminal.options import positive, typed

SCORES = {
    "theory": ("inputs", "labels"),
    "sensitivity": ("outputs", "gradients"),
    "norm": ("outputs",),
    "entropy": (),
}
"""Score -> what it takes besides attention. The order of the first that a file gives leads."""

NPZ = ".npz"

SUFFIXES = (NPZ, ".safetensors")


def parser() -> Parser:
    """Of the command; it refuses what the command line has wrong."""
    made = Parser("chapters.paths.prune", _ABOUT, _EXAMPLES)
    add = made.add_argument
    add("file", metavar="FILE", help=".npz or .safetensors, with the arrays above")
    add("--width", type=positive, default=10, metavar="N", help="of the theory's network (10)")
    add(
        "--temperature",
        type=typed(Number(0)),
        metavar="T",
        help="of the theory; default: of ten from .01 to 1.5, the one with the best accuracy on "
        "the held-out samples",
    )
    add(
        "--readout",
        choices=("mean", "last"),
        default="mean",
        help="the network reads the mean of all tokens, or the last one (mean)",
    )
    add(
        "--by",
        choices=SCORES,
        help="whose order of removal is printed first; default: of theory, sensitivity, norm and "
        "entropy the first that the file allows",
    )
    add(
        "--out",
        metavar="DIR",
        help="for scores.csv and order.json; default: FILE without its suffix, and -heads",
    )
    return made


_ABOUT = """Scores every attention head of a network that you bring, and says in which order to
remove them: the head with the lowest score first, until each layer has one head left.

FILE holds arrays by name, as PyTorch has them; layers count from 1:
  attention.1 ... attention.L  (samples, heads, queries, keys): what each query takes from each
                               key, softmax over the last axis, before dropout; as many queries
                               as keys, layers may differ in heads. Required
  inputs                       (samples, tokens, features): the network's tokens, best scaled to
                               a mean square of 1
  labels                       (samples,): -1 or +1, or 0 or 1, which the theory takes
  held_out                     (samples,), true or false: samples on which the temperature is
                               chosen; the theory learns from the others. Default: the last quarter
  outputs.1 ... outputs.L      (samples, heads, ...): what each head puts out, before heads are
                               summed or projected
  gradients.1 ... gradients.L  as outputs: derivative of each sample's loss with respect to them
Each holds real numbers: float16, bfloat16 (.safetensors), float32, float64, whole numbers or bool.
Rows of attention are divided by their sums, which may be .01 from 1, as in half precision. Other
arrays are ignored.

scores, the higher, the more a head matters:
  theory       how much the order parameter uses the head (arXiv 2405.15926), from 0 to 1; needs
               inputs and labels
  norm         root mean square of the head's output; needs outputs
  sensitivity  mean of |sum of output x gradient|, each layer divided by its l2 norm (Michel et
               al., NeurIPS 2019, equation 2); needs outputs and gradients
  entropy      1 - entropy of attention / ln(tokens), from 0 (all alike) to 1

The theory covers networks with linear values whose attention is computed from the input, without
residual connections, MLPs or layer norms. For any other network its score is a heuristic: see
"Your own network" in docs/attention-paths.md. It takes at most 4,096 paths (heads of all layers
multiplied); where it cannot be solved, the other scores are given, and the reason. Exit status:
0 done, 2 unusable request."""

_EXAMPLES = """
examples:
  python -m chapters.paths.prune network.npz
  python -m chapters.paths.prune network.safetensors --width 30 --temperature 0.1 --by theory
  python -m chapters.paths.prune network.npz --readout last --out pruned

FILE from Python, where maps is a list of tensors, one per layer (after model.eval(), which turns
dropout off; torch.nn.MultiheadAttention gives them with average_attn_weights=False):
  arrays = {f"attention.{n}": each.detach().numpy() for n, each in enumerate(maps, start=1)}
  np.savez("network.npz", **arrays, inputs=inputs.numpy(), labels=labels.numpy())

scores.csv has a row per head: layer, head, its scores, and removed_SCORE, the step (1, 2, ...) at
which it is removed by that score; empty for heads that stay. order.json has the same orders as
lists of [layer, head], FILE, what the theory was solved with, and why a score is missing.
"""
