"""Parts: paradigms, models, tasks, studies and what belongs to them, which a file registers.

A file of parts calls the functions `register_...` when it is imported; `--with FILE` imports it,
and so does the entry point group `attention_study.parts` of an installed package, by which the
project's own chapters come in, too (`study.door`). What a part from outside determines is hashed
with the digest of what it uses of its file: a change there makes other cells.
"""

from study.parts.loading import PartFile as PartFile
from study.parts.loading import load as load
from study.parts.loading import loaded as loaded
from study.parts.loading import with_parts as with_parts
from study.parts.option import add_parts as add_parts
from study.parts.option import load_parts as load_parts
from study.parts.origin import ORIGINS as ORIGINS
from study.parts.origin import digest_of as digest_of
from study.parts.origin import require as require
from study.parts.origin import sources as sources
from study.parts.register import register_columns as register_columns
from study.parts.register import register_command as register_command
from study.parts.register import register_function as register_function
from study.parts.register import register_kind as register_kind
from study.parts.register import register_measure as register_measure
from study.parts.register import register_model as register_model
from study.parts.register import register_paradigm as register_paradigm
from study.parts.register import register_section as register_section
from study.parts.register import register_settings as register_settings
from study.parts.register import register_study as register_study
from study.parts.register import register_synonyms as register_synonyms
from study.parts.register import register_task as register_task
