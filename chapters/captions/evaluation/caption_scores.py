"""Bleu and CIDEr: how much captions agree with those that people wrote.

Both libraries are in the extra `captions`; neither needs Java or the network.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections.abc import Sequence

from study.errors import RequestError

LONGEST_NGRAM = 4
_LIBRARIES = ("sacrebleu", "pycocoevalcap")


def require_scorers() -> None:
    """Refuses to go on without the libraries, before hours of training rather than after.

    Raises:
        RequestError: one is not installed.
    """
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise RequestError(
            f"captions are scored with {' and '.join(missing)}, which is not installed here. "
            "Install the extra: uv sync --extra captions"
        )


def bleu(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Bleu-1 to Bleu-4 of a corpus (Papineni et al., ACL 2002), by sacrebleu, unsmoothed.

    Bleu-n is the geometric mean of the clipped precisions of 1- to n-grams, times the brevity
    penalty. Counts and lengths are summed over the corpus first; of several references, the
    nearest in length counts, of equally near ones the shorter.

    Args:
        captions: one an image, words separated by blanks; "" is a caption without words.
        references: those of each image, at least one, tokenised as the captions are.

    Returns:
        Bleu-1 to Bleu-4, fractions; 0 from the first n on of which no n-gram is right.
    """
    from sacrebleu import BLEU

    scorer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=LONGEST_NGRAM)
    # sacrebleu takes the first references of all images, then the second ones, None if missing.
    found = scorer.corpus_score(captions, list(itertools.zip_longest(*references)))
    precisions = [percent / 100 for percent in found.precisions]
    return tuple(
        found.bp * math.prod(precisions[:n]) ** (1 / n) for n in range(1, LONGEST_NGRAM + 1)
    )


def cider(captions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """CIDEr-D (Vedantam et al., CVPR 2015), by pycocoevalcap, as the COCO server computes it.

    The mean over images of 10 times the mean cosine of tf-idf weighted n-grams, clipped, with a
    Gaussian penalty on the difference in length. Document frequencies are those of `references`,
    so that values of different splits do not compare; of a single image it is 0.

    Args:
        captions, references: as of `bleu`.

    Returns:
        In [0, 10]; the literature likes to print it times 10 or 100.
    """
    from pycocoevalcap.cider.cider import Cider

    of_images = {image: list(each) for image, each in enumerate(references)}
    written = {image: [caption] for image, caption in enumerate(captions)}
    mean, _ = Cider(n=LONGEST_NGRAM).compute_score(of_images, written)
    return float(mean)
