"""What is measured of a trained model, or of attention and scores."""

from study.evaluate.heat_map import heatmap as heatmap
from study.evaluate.heat_map import saif as saif
