"""Attention paths: the statistical mechanics of deep attention networks, arXiv 2405.15926."""

from chapters.paths.attention_paths.features import path_features as path_features
from chapters.paths.attention_paths.prediction import Predictor as Predictor
from chapters.paths.attention_paths.prediction import gp_limit as gp_limit
from chapters.paths.attention_paths.prediction import head_scores as head_scores
from chapters.paths.attention_paths.prediction import overlaps as overlaps
from chapters.paths.attention_paths.prediction import without_interplay as without_interplay
from chapters.paths.attention_paths.samples import CONVERGED as CONVERGED
from chapters.paths.attention_paths.samples import Estimate as Estimate
from chapters.paths.attention_paths.samples import Samples as Samples
from chapters.paths.attention_paths.samples import sample as sample
from chapters.paths.attention_paths.size import Size as Size
from chapters.paths.attention_paths.solution import Solution as Solution
from chapters.paths.attention_paths.solution import solve as solve
