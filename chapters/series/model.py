"""A small convolutional network of windows, which are images one pixel wide."""

from __future__ import annotations

from study.models.images import Net, focus_and_classifier

_CONV1D = Net(convs=((16, 3, 1, 1), (32, 3, 1, 1)), linears=(32,))

conv1d = focus_and_classifier(_CONV1D, _CONV1D)
