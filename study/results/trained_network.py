"""A trained network that was kept: what it predicts of inputs that a person brings, and why."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from study import paradigms, tasks
from study.cell import Cell
from study.door import imported
from study.errors import RequestError
from study.tasks.sources.places import Places
from study.tasks.task import Asked, Task

if TYPE_CHECKING:
    from torch import Tensor

    from study.models.model import Model
    from study.paradigms.paradigm import Paradigm
    from study.tracking.looks import Example


@dataclass(frozen=True)
class Shown:
    """Where a network looks, as a notebook shows it.

    Attributes:
        title: the paradigm that predicts.
        examples: the inputs.
    """

    title: str
    examples: Sequence[Example]

    def _repr_html_(self) -> str:
        from study.tracking.looks import STYLE, looks_html

        return f"<style>{STYLE}</style>{looks_html({self.title: self.examples})}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page of HTML."""
        from study.tracking.looks import looks_page

        Path(path).write_text(looks_page(self.examples, self.title, ""), encoding="utf-8")


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """The network that a cell trained.

    Attributes:
        cell: that trained it.
        model: with the trained weights, in evaluation mode; on the CPU, unless it is moved.
        carried: what it knows of its data (`study.tasks.task.carried`), and the cell's m.
        places: of its data.
    """

    cell: Cell
    model: Model
    carried: Mapping[str, Any]
    places: Places

    @property
    def task(self) -> Task:
        """Its task, with its data; `task.splits(cell)["test"]` is what it was tested on.

        Raises:
            RequestError: the data is missing or changed.
        """
        from study.train.run_training import task_of

        return task_of(self.cell, self.places)

    @property
    def paradigm(self) -> Paradigm:
        """The paradigm whose formula predicts, as at the last evaluation."""
        last = paradigms.get(self.cell.schedule.phases[-1].paradigm)
        return paradigms.get(self.cell.inference or last.exact)

    @property
    def classes(self) -> list[str]:
        """The name of each class, or its number where the task does not name them."""
        return [*map(str, self.carried.get("classes") or range(self.carried["num_classes"]))]

    def predict(self, given: Any, *, tiles: int | tuple[int, int] | None = None) -> pd.DataFrame:
        """What it predicts of inputs, and the attention on their segments.

        Args:
            given: of mosaics of images a picture, which is cut into tiles: a file, a Pillow image,
                or an array (H, W) or (H, W, 1, 3 or 4) of whole numbers in 0..255 or fractions in
                [0, 1]. Or a list of pictures, which are the segments of one mosaic; an array
                (m, H, W, C) is such a list. Or a list of such lists. Of series likewise an array
                (steps, channels), a list of windows, or a list of such lists. Of texts one text,
                a list of texts, or a list of lists of words.
            tiles: into how many to cut each picture, or (rows, columns); None: into the m of the
                cell, if one is given, whose tiles are then nearest to squares.

        Returns:
            A row per input: `input`, its file or number; `predicted`, the class of highest
            probability, its `score`; `p_<class>`, the probability of each class; `segments`, the
            words, files, or numbers of tiles, row by row; `attention` on each, which sums to 1.

        Raises:
            RequestError: it writes captions or compares images: its model has functions for that;
                its focus never trained; or what is given is no input of it, or damaged.
        """
        return pd.DataFrame([*self._answers(self._asked(given, tiles))])

    def show(self, given: Any, *, tiles: int | tuple[int, int] | None = None) -> Shown:
        """Where it looks: tiles in frames, windows, or shaded words; arguments as of `predict`."""
        asked = self._asked(given, tiles)
        examples: list[Any] = [
            {**each.shown(), **answer, "foreground": []}
            for each, answer in zip(asked, self._answers(asked), strict=True)
        ]
        return Shown(self.cell.paradigm, examples)

    def outputs(self, segments: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What it makes of inputs as it takes them, such as a batch of its task.

        Args:
            segments: (B, m, ...), as in a `study.tasks.task.Batch`, on the device of the model.
            mask: (B, m) bool, True = real segment; None: all are.

        Returns:
            Attention (B, m), whose rows sum to 1, and class probabilities (B, C).

        Raises:
            RequestError: it writes captions or compares images.
        """
        import torch

        from study.hardware import products

        if tasks.modality(self.cell.task).evaluation != tasks.MOSAICS.evaluation:
            raise self._refusal()
        # A CPU has no TensorFloat-32: it is exact there.
        precision = self.cell.precision if segments.is_cuda else "float32"
        with torch.no_grad(), products(precision, segments.device):
            heads = self.model.focus, self.model.classifier
            return self.paradigm.predict(*heads, self.model.encode(segments, mask), mask)

    def _asked(self, given: Any, tiles: Any) -> list[Asked]:
        reads = tasks.modality(self.cell.task).reads
        if not reads:
            raise self._refusal()
        if self.cell.alpha is not None:
            raise RequestError(
                "the focus of this network never trained, as its attention was held on the "
                "foreground: it does not say where to look."
            )
        if tiles is not None and reads != tasks.MOSAICS.reads:
            raise RequestError(
                f"tiles= cuts pictures, and {self.cell.task} has none: leave it out."
            )
        asked: list[Asked] = imported(reads)(self.carried, given, tiles)
        return asked

    def _refusal(self) -> RequestError:
        task = self.cell.task
        return RequestError(f"a network of {task} does not classify segments: call its `model`.")

    def _answers(self, asked: Sequence[Asked]) -> Iterator[dict[str, Any]]:
        """The columns that `predict` returns, of each input, computed pass by pass."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from study.hardware import pass_size

        device = next(self.model.parameters()).device
        shape = self.model.segment_shape or asked[0].segments.shape[1:]
        longest = max(len(each.parts) for each in asked)
        size = pass_size(4 * longest * math.prod(shape), device)
        for start in range(0, len(asked), size):
            some = asked[start : start + size]
            segments = pad_sequence([each.segments for each in some], batch_first=True)
            real = [torch.ones(len(each.parts), dtype=torch.bool) for each in some]
            mask = pad_sequence(real, batch_first=True)
            outputs = self.outputs(segments.to(device), None if mask.all() else mask.to(device))
            arrays = (output.cpu().numpy() for output in outputs)
            for each, attention, scores in zip(some, *arrays, strict=True):
                of_classes = dict(zip(self.classes, map(float, scores), strict=True))
                yield {
                    "input": each.name,
                    "predicted": max(of_classes, key=of_classes.__getitem__),
                    "score": max(of_classes.values()),
                    **{f"p_{name}": score for name, score in of_classes.items()},
                    "segments": [*each.parts],
                    # As few digits as tell one float32 from the next.
                    "attention": [float(str(share)) for share in attention[: len(each.parts)]],
                }
