"""Cells: everything that determines a result, and nothing else. `Cell` is the one that trains."""

from study.cell.any_cell import NO_OPTIONS as NO_OPTIONS
from study.cell.any_cell import AnyCell as AnyCell
from study.cell.any_cell import Options as Options
from study.cell.cell import PRECISIONS as PRECISIONS
from study.cell.cell import Cell as Cell
from study.cell.network_settings import NORMALISATIONS as NORMALISATIONS
from study.cell.network_settings import NetworkSettings as NetworkSettings
from study.cell.schedule import HYBRIDS as HYBRIDS
from study.cell.schedule import PARADIGMS as PARADIGMS
from study.cell.schedule import Budget as Budget
from study.cell.schedule import Phase as Phase
from study.cell.schedule import Schedule as Schedule
from study.cell.settings import Settings as Settings
