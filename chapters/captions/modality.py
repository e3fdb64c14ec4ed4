"""Captions: the words that people read, how what was written is measured and shown."""

from __future__ import annotations

from study.tasks.task import Gallery, Measure, Modality

CAPTIONS = Modality(
    "captions",
    counted="categories with one box in an image",
    m="regions m",
    foreground="the box of the category",
    heatmap_edges=(0.0, 0.2, 0.3, 1.0),
    saif_text="SAIF is the share of test categories with one box in an image for which the "
    "category's words have probability s_y {at} at some word of the caption, that at which they "
    "have most, and there the box has attention a_z {at}.",
    saif_threshold=0.3,
    score="Bleu-4",
    chance=False,
    measures=(
        *(Measure(f"bleu_{n}", f"Bleu-{n}", lost=0.0) for n in (1, 2, 3, 4)),
        Measure("cider", "CIDEr", is_share=False, lost=0.0, bounded=False),
        Measure("caption_length", "words a caption", is_share=False, bounded=False),
    ),
    measures_text="Captions compared with those that people wrote of the same image, with t "
    "intervals. Bleu-n is the geometric mean, over lengths 1 to n, of the share of a caption's "
    "word sequences that people's captions have, too, and is lowered where captions are shorter "
    "than people's. CIDEr gives more weight to sequences that are rare among images and has a "
    "scale of its own.",
    evaluation="chapters.captions.evaluation.caption_evaluation:evaluate",
    gallery=Gallery(
        "chapters.captions.pictures:pictures",
        "captions",
        "Where each word looks",
        "Captions of images that no model trained on, written by the chosen option of each "
        "paradigm, of its lowest seed. Each word stands below the image as the model saw it when "
        "it wrote the word: lit where the attention is, as large as its largest, and dark where "
        "there is none. Every image has the box of one category. Framed is the word at which the "
        "category's words have most probability: its score s_y, and the attention in the box a_z "
        "there, are what SAIF counts.",
    ),
    published="chapters.captions.published:CAPTIONS",
    settings="decoder",
    rare=("encoder_lr", "teacher_forcing", "hard_teacher_forcing"),
    optimiser="adam",
    named_by="encoder",
    own_columns=("optimiser", "encoder_lr", "teacher_forcing"),
)
