"""Texts whose words are segments: posts of HateXplain (A.3), and texts of your own.

`studies` declares both studies, `tasks` their data (`hatexplain`, `own_texts`), which `posts` and
`texts` make ready; `model` and `layers` are the networks. `plausibility` measures how far
attention agrees with people; `modality` says it all to them, `published` is what the paper
printed. docs/hatexplain.md tells what is measured.
"""
