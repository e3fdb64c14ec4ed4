"""Jobs on Ray: trials, nodes, failures."""
