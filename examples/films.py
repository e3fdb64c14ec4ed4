"""Makes up 1,500 reviews in which one word tells, in `films/`, for docs/your-own/texts.md."""

import json
import random
from pathlib import Path

random.seed(0)
telling = {"good": ["fine", "lovely", "moving"], "bad": ["dull", "slow", "weak"]}
others = ["the", "a", "film", "story", "actor", "scene", "plot", "music", "end"]
others += ["was", "and", "of", "with", "in", "very", "rather"]
lines = []
for number in range(1500):
    label, opposite = random.sample(["good", "bad"], 2)
    tokens = random.choices(others, k=random.randint(8, 24))
    here, there = random.sample(range(len(tokens)), 2)
    tokens[here] = random.choice(telling[label])
    if number % 3 == 0:  # as in "slow, but moving", which is hard to tell
        tokens[there] = random.choice(telling[opposite])
    rationale = [int(place == here) for place in range(len(tokens))]
    lines.append(json.dumps({"tokens": tokens, "label": label, "rationale": rationale}))
Path("films").mkdir(exist_ok=True)
Path("films/films.jsonl").write_text("\n".join(lines), encoding="utf-8")
