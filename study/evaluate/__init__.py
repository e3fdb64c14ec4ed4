"""Metrics of a trained model, or of its attention and scores."""

from study.evaluate.saif_and_heat_map import heatmap as heatmap
from study.evaluate.saif_and_heat_map import saif as saif
