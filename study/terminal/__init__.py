"""What people see of a command: its text, its progress, its end."""

from study.terminal.width import counted as counted
from study.terminal.width import fitted as fitted
from study.terminal.width import sentence as sentence
from study.terminal.width import tabulated as tabulated
