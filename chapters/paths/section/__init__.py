"""The theory of attention paths (arXiv 2405.15926), beside sampling and on trained networks."""
