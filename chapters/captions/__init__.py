"""Captions: images whose regions are segments, described word by word (section 5, A.4).

`studies` declares the study, `task` its data (`data/`), `encoders/` what turns images into
regions, `model` and `settings` the decoder that attends anew for every word. `evaluation/` writes
captions and judges words and attention; `modality` says it all to people, `pictures` and
`published` show it in the report. docs/captions.md tells what is measured.
"""
