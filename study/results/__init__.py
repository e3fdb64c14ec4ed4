"""The results directory, and the only door between `study` and `analysis`."""

from study.evaluate.saif_and_heat_map import HEATMAP_EDGES as HEATMAP_EDGES
from study.evaluate.saif_and_heat_map import SAIF_THRESHOLD as SAIF_THRESHOLD
from study.results.cell_copies import agree as agree
from study.results.coverage import KEY as KEY
from study.results.coverage import Damage as Damage
from study.results.coverage import coded as coded
from study.results.listing import COMPACT_PREFIX as COMPACT_PREFIX
from study.results.parquet import DICTIONARIES as DICTIONARIES
from study.results.report_folder import report_files as report_files
from study.results.report_folder import report_folder as report_folder
from study.results.results import Results as Results
from study.results.schema import CAPTIONING as CAPTIONING
from study.results.schema import CELLS_SCHEMA as CELLS_SCHEMA
from study.results.schema import DYNAMICS as DYNAMICS
from study.results.schema import EVALUATIONS_SCHEMA as EVALUATIONS_SCHEMA
from study.results.schema import FURTHER as FURTHER
from study.results.schema import IMAGES as IMAGES
from study.results.schema import METRICS as METRICS
from study.results.schema import NETWORK as NETWORK
from study.results.schema import SOLUTION as SOLUTION
from study.results.schema import SPLITS as SPLITS
from study.results.schema import cell_columns as cell_columns
from study.results.survey import Survey as Survey
from study.storage.storage import ResultsError as ResultsError
from study.storage.storage import Storage as Storage
from study.storage.urls import local_path as local_path
