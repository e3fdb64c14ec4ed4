"""Attention paths: the statistical mechanics of deep attention networks, arXiv 2405.15926."""

from study.theory.attention_paths.data_term import memory as memory
from study.theory.attention_paths.data_term import search_flops as search_flops
from study.theory.attention_paths.features import path_features as path_features
from study.theory.attention_paths.prediction import Predictor as Predictor
from study.theory.attention_paths.prediction import gp_limit as gp_limit
from study.theory.attention_paths.prediction import head_scores as head_scores
from study.theory.attention_paths.prediction import overlaps as overlaps
from study.theory.attention_paths.prediction import without_interplay as without_interplay
from study.theory.attention_paths.samples import CONVERGED as CONVERGED
from study.theory.attention_paths.samples import Estimate as Estimate
from study.theory.attention_paths.samples import Samples as Samples
from study.theory.attention_paths.samples import sample as sample
from study.theory.attention_paths.solution import Solution as Solution
from study.theory.attention_paths.solution import solve as solve
