"""What every kind of sections keeps, on made-up results: see `analysis.section.section`.

A kind to come is registered as a `study.reported.SectionOf`, and its chapter brings results of it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis.conclude import Conclusions, conclude
from analysis.digest.read import cells_of
from analysis.groups import claimed
from analysis.kinds import find
from analysis.page import comparisons as comparison
from analysis.page.exports import claim_rows
from analysis.page.files import figures
from analysis.section.picture import Shown
from analysis.section.section import Chapter, Question, Section, by_chapter
from study.reported import SECTIONS
from study.results import Results
from tests.conftest import not_drawn
from tests.made_up.chapters import Reported, brought
from tests.made_up.comparisons import make_results, write_comparisons
from tests.made_up.pages import page_of_section
from tests.made_up.summaries import NOTE, curves_of, metrics_of

WIDTH = 60
"""Of a narrow terminal; longer words stay whole."""

MLFLOW_NAME = re.compile(r"[\w\-. /]{1,250}", re.ASCII)
"""What MLflow takes as the name of a metric or parameter (`mlflow.utils.validation`)."""

MOST_IN_PARAM, MOST_IN_TAG, MOST_IN_DESCRIPTION = 6_000, 8_000, 20_000
"""Characters that it takes in a parameter, in a tag of a run, and in one of an experiment."""


OF_A_USER = {"text.usetex": True, "figure.facecolor": "black"}
"""Settings of Matplotlib that are not ours."""

COMPARISON = comparison.__name__
_REPORTED = [Reported(write_comparisons, COMPARISON), *brought().results.values()]
MADE_UP = {
    kind: [each.write for each in _REPORTED if each.kind == kind]
    for kind in (COMPARISON, *SECTIONS)
}
"""Module of a kind -> what writes results of it."""


class Made(NamedTuple):
    """Results of one kind and what is found in them.

    Attributes:
        results: of nothing else.
        found: what is concluded from them.
        report: the folder of its report, without what figures show.
        early: how many figures were drawn for what is printed, and until the report was asked for.
        drawn: every figure that was drawn, in this order, for a user with `OF_A_USER`.
    """

    results: Results
    found: Conclusions
    report: Path
    early: int
    drawn: list[Figure]

    @property
    def sections(self) -> list[Section[Any]]:
        return list(self.found.sections)

    @property
    def chapter(self) -> Chapter:
        return self.sections[0].chapter


@pytest.fixture(scope="module")
def each_kind(tmp_path_factory) -> dict[str, Made]:
    """Of every kind what is found in its results, and its report, written once."""
    return {kind: _made(kind, tmp_path_factory.mktemp("made")) for kind in MADE_UP}


@contextlib.contextmanager
def drawings() -> Iterator[list[Figure]]:
    """Every figure that is written as a PNG picture meanwhile, in this order; none is drawn."""
    drawn = []
    with not_drawn(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "analysis.section.picture.figure_png", lambda figure: drawn.append(figure) or b"png"
        )
        yield drawn


def _made(kind: str, folder: Path) -> Made:
    results = make_results(folder / "results")
    for write in MADE_UP[kind]:
        write(results)
    found = conclude(results)
    with mpl.rc_context(OF_A_USER), drawings() as drawn:
        with contextlib.redirect_stdout(io.StringIO()):
            found.print()
        runs = found.answer().summaries
        early = len(drawn)
        with np.printoptions(legacy="1.13"):  # CSV files do not follow how a notebook prints
            found.write(folder / "report")
        for run in runs:
            assert any(re.fullmatch(r"[^/]+\.png", name) for name in run.files())
    return Made(results, found, folder / "report", early, drawn)


@pytest.fixture(params=MADE_UP)
def made(request, each_kind) -> Made:
    return each_kind[request.param]


@pytest.fixture(scope="module")
def everything(each_kind, tmp_path_factory) -> Conclusions:
    """Results of all kinds in one directory."""
    folder = tmp_path_factory.mktemp("everything") / "results"
    for made in each_kind.values():
        shutil.copytree(made.results.url, folder, dirs_exist_ok=True)
    return conclude(folder)


def shown(section: Section[Any]) -> list[Shown]:
    """Its pictures without their contents."""
    return [
        Shown(each.title, each.caption, "", f"{each.name}.png", each.wide)
        for each in section.pictures
    ]


# --- the registry


def test_every_kind_is_tested():
    assert all(MADE_UP.values())


def test_every_kind_has_cells_of_its_own(everything):
    assert {*claimed(cells_of(everything.results))} == {"", *SECTIONS}


def test_kinds_do_not_disturb_each_other(made, everything):
    """In one directory with all others a section says what it says alone."""
    found = {section.key: section for section in everything.sections}
    for section in made.sections:
        assert found[section.key].title == section.title
        assert found[section.key].text() == section.text()


# --- a section


def test_sections_are_told_apart(everything):
    sections = everything.sections
    assert all(re.fullmatch("[0-9a-f]{8}", section.key) for section in sections)
    for names in ([s.key for s in sections], [s.title for s in sections]):
        assert len(set(names)) == len(names)
    rows = claim_rows(sections)
    labels = list(dict.fromkeys(name for section in sections for name in section.labels))
    assert len(rows.drop_duplicates(labels)) == len(sections)
    assert len(rows) == sum(len(section.claims) for section in sections)


def test_each_rests_on_cells_of_its_own(made):
    ids = [cell_id for section in made.sections for cell_id in section.cells["cell_id"]]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(made.results.cells()["cell_id"])
    for section in made.sections:
        rows = section.cell_rows()
        assert sorted(rows["cell_id"]) == sorted(section.cells["cell_id"])
        assert not {"cell", "package_versions"} & set(rows.columns)
        (alone,) = made.found.of(section.cells["cell_id"][:1]).sections
        assert alone is section


# --- tables


def tables(found: Conclusions) -> dict[str, pd.DataFrame]:
    """As the chapters export them."""
    chapters = by_chapter(found.sections)
    return {k: v for chapter, mine in chapters for k, v in chapter.tables(mine).items()}


def test_tables_are_exported_at_full_precision_and_in_order(made):
    for name, table in tables(made.found).items():
        assert table.columns.is_unique
        read = pd.read_csv(made.report / f"{name}.csv", dtype=str)
        assert list(read.columns) == list(table.columns)
        for column in table.select_dtypes("number"):
            numbers = read[column].map(float).to_numpy(float)  # to the last bit
            np.testing.assert_array_equal(numbers, table[column].to_numpy(float, na_value=np.nan))


def test_chapters_and_their_tables_are_told_apart(everything):
    names = []
    for chapter, mine in by_chapter(everything.sections):
        assert list(chapter.names(mine)) == mine
        assert chapter.name == chapter.name.strip() != ""
        names += [*chapter.tables(mine), *chapter.papers(mine)]
    assert len(set(names)) == len(names)
    assert not {"cells", "claims"} & set(names)


# --- pictures and the page


def test_claims_and_pictures_are_said_in_full(made):
    """A picture has a name of a file, and an alternative text of one sentence."""
    for claim in (claim for section in made.sections for claim in section.claims):
        for text in (claim.name, claim.statement, claim.test, claim.measured):
            assert text == text.strip() != ""
            assert "\n" not in text
            assert "nan" not in text.lower().split()
    of_sections = [section.pictures for section in made.sections]
    assert all(of_sections)
    for pictures in (*of_sections, made.chapter.pictures(made.sections)):
        assert len({picture.name for picture in pictures}) == len(pictures)
        for picture in pictures:
            assert re.fullmatch(figures(), picture.name), picture.name
            for text in (picture.title, picture.caption):
                assert text == text.strip() != ""
    for each in itertools.chain(*map(shown, made.sections)):
        assert re.fullmatch(r"[A-Z].{20,}[^.]\.", each.alt), each.alt
        assert ". " not in each.alt
        assert each.caption.startswith(each.alt)


def test_figures_have_our_settings_whatever_a_user_has(made):
    """And texts with names in them are as typed."""
    names = {name for section in made.sections for name in section.cells["paradigm"].dropna()}
    for figure in made.drawn:
        assert to_hex(figure.get_facecolor()) == "#ffffff"
        for text in (text for text in figure.findobj(Text) if text.get_text()):
            assert not text.get_usetex()
            assert not (text.get_parse_math() and any(n in text.get_text() for n in names)), text


def test_every_table_links_its_csv_and_every_figure_its_pdf(made):
    page = (made.report / "report.html").read_text()
    links = [link for link in re.findall('href="(.*?)"', page) if not link.startswith("#")]
    assert all((made.report / link).is_file() for link in links)
    tables = page.count('<div class="scroll" tabindex="0"><table><thead>')
    for end, shown_ones in ((".csv", tables), (".pdf", page.count("<figure"))):
        assert sum(link.endswith(end) for link in links) == shown_ones > 0


def test_every_section_shows_its_pictures_once_and_names_every_claim(made):
    for section in made.sections:
        pictures = shown(section)
        forms = ("html", "markdown")
        pages = {form: page_of_section(section, form, pictures) for form in forms}
        files = re.findall(r"!\[.*\]\((.*)\)", pages["markdown"])
        assert sorted(files) == sorted(each.file for each in pictures)
        assert pages["html"].count("<figure") == len(pictures)
        for text in (
            unescape(re.sub("<[^>]*>", "", pages["html"])),
            re.sub(r"\\(.)", r"\1", pages["markdown"]),
        ):
            for claim in section.claims:
                assert claim.statement in text
                assert claim.measured in text
                assert claim.test in text
            command = re.search(r"--again (\w+) --results '/my results'", text)
            assert command
            assert command[1] in set(section.cells["cell_id"])


def test_text_fits_the_terminal(made, capsys, monkeypatch):
    printed = {}
    for width in (WIDTH, 400):
        monkeypatch.setenv("COLUMNS", str(width))
        made.found.print(published=True)
        printed[width] = capsys.readouterr().out
    assert max(map(len, printed[WIDTH].splitlines())) <= WIDTH
    narrow, wide = (set(re.split(r"[\s:-]+", text)) for text in printed.values())
    assert wide <= narrow
    assert not re.search(r"\n\n\n|\bnan\b", printed[400])


# --- MLflow


def test_summaries_have_names_and_values_that_mlflow_takes(everything):
    answer = everything.answer()
    assert 0 < len(answer.text) <= MOST_IN_DESCRIPTION
    runs = answer.summaries
    for names in ([run.key for run in runs], [run.name for run in runs]):
        assert len(set(names)) == len(names)
    for run in runs:
        what = run.key.rpartition("/")[2]
        assert run.name.startswith(f"{what} · ")  # MLflow cuts the rest
        assert f" · n={metrics_of(run)['n']:g}" in run.name
        for name in (*(point.name for point in run.points), *run.params, *answer.counts):
            assert MLFLOW_NAME.fullmatch(name), name
        assert all(math.isfinite(point.value) for point in run.points)
        for curve in curves_of(run).values():
            steps = [step for step, _ in curve]
            assert steps == sorted(steps)
        assert all(0 < len(text) <= MOST_IN_PARAM for text in run.params.values())
        assert all(0 < len(text) <= MOST_IN_TAG for text in run.tags.values())


def test_a_paradigm_has_a_colour_of_its_own(everything):
    pairs = {
        (run.params["paradigm"], run.tags["mlflow.runColor"])
        for run in everything.answer().summaries
        if "paradigm" in run.params
    }
    paradigms, colours = zip(*pairs, strict=True)
    assert len(pairs) == len({*paradigms}) == len({*colours}) > 1


def test_every_kind_has_summaries_and_counts(made):
    answer = made.found.answer()
    assert answer.summaries
    cells, claims = (
        sum(count for name, count in answer.counts.items() if name.startswith(of))
        for of in ("cells ", "claims ")
    )
    assert cells == sum(len(each.cells) for each in made.sections)
    assert claims == sum(len(each.claims) for each in made.sections)
    for column in ("paradigm", "method"):
        named = {run.params.get(column) for run in answer.summaries} - {None}
        assert named <= {name for each in made.sections for name in each.cells[column]}


def test_notes_begin_with_the_answer_and_say_every_claim(made):
    """Where paradigms are compared, the claims of the paper are left to the report."""
    for section in made.sections:
        alone = made.found.of(section.cells["cell_id"]).answer()
        notes = {run.tags[NOTE] for run in section.summaries()}
        if made.chapter.compares:
            assert all(note.splitlines()[0] in alone.text for note in notes)
            continue
        assert all(note.startswith("Of ") for note in notes)
        for claim in section.claims:
            for text in (f"{claim.name} {claim.verdict}", claim.setting, claim.measured):
                assert any(text in note for note in notes)


# --- all of it


def test_nothing_is_drawn_twice_or_before_it_is_asked_for(made):
    """The report and the summaries share what is drawn; for print nothing is."""
    pictures = len(made.chapter.pictures(made.sections))
    pictures += sum(len(section.pictures) for section in made.sections)
    assert made.early == 0
    assert len(made.drawn) == len({*map(id, made.drawn)}) == pictures


def test_a_report_leaves_nothing_of_an_older_one(made, each_kind, tmp_path):
    for other in each_kind.values():
        shutil.copytree(other.report, tmp_path, dirs_exist_ok=True)
    with drawings() as again:
        made.found.write(tmp_path)
    assert not again
    over, alone = (
        {path.relative_to(folder) for path in folder.rglob("*")}
        for folder in (tmp_path, made.report)
    )
    assert over == alone


def test_options_of_comparisons_concern_some_kinds_only(made):
    question = Question(budget=0.5e6)
    found = Conclusions(made.results.url, question, made.sections)
    refused = ["--budget"] * (not made.chapter.compares)
    refused += ["--published"] * (not made.chapter.has_published)
    if refused:
        text = f"{', '.join(refused)}: there is nothing to compare here, only {made.chapter.name}"
        with pytest.raises(Exception, match=text):
            found.require(published=True)
    else:
        found.require(published=True)
        assert find(made.results, question)
