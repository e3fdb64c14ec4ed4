"""The interplay of attention paths: a theory of finite width, and heads of trained networks.

`attention_paths/` is the theory, beside exact samples. `posterior/` is the kind of cell that
solves or samples it on hidden Markov chains; `one_shot/` has task and network of one-shot images,
whose heads the kind `heads/` scores and removes. `section/` and `figures/` report both; `prune/`
is the command that scores the heads of a network in a file. docs/attention-paths.md tells the
rest.
"""
