"""Closed forms of the linear orthogonal setting: section 4 of the paper, solved."""

from study.theory.linear_orthogonal.flow import INCENTIVE_STEP as INCENTIVE_STEP
from study.theory.linear_orthogonal.flow import floor as floor
from study.theory.linear_orthogonal.flow import incentive_slope as incentive_slope
from study.theory.linear_orthogonal.flow import time_to as time_to
from study.theory.linear_orthogonal.flow import trajectory as trajectory
