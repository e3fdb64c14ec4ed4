"""Closed forms of the linear orthogonal setting: section 4 of the paper, solved."""

from chapters.dynamics.linear_orthogonal.flow import INCENTIVE_STEP as INCENTIVE_STEP
from chapters.dynamics.linear_orthogonal.flow import floor as floor
from chapters.dynamics.linear_orthogonal.flow import incentive_slope as incentive_slope
from chapters.dynamics.linear_orthogonal.flow import time_to as time_to
from chapters.dynamics.linear_orthogonal.flow import trajectory as trajectory
