"""Find how a sound glides and fades, from its spectrogram alone.

The sound is exp(−d t) sin(2π (f t + c t² / 2)). The loss compares the magnitude of its short-time spectrum, which does
not contain the phase. The gradient at the start is compared with finite differences of NumPy's transforms. The descent
ends at the frequency, glide and decay of the recording.

    python examples/stft.py                starts its own server and stops it
    python examples/stft.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from adam import Adam
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Array

SAMPLES, WINDOW, STRIDE = 1024, 128, 32
#: frequency and glide in cycles per second, per second; and decay per second, of a second of sound
TRUE, START = np.array([90.0, 60.0, 2.0]), np.array([92.0, 57.0, 1.5])
TIMES = np.arange(SAMPLES) / SAMPLES
HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)


class Spectrogram:
    """The sound of three numbers, its spectrogram, and the distance from the recording's."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.theta, self.recorded = g.parameter(), g.input()
        frequency, glide, decay = (self.theta.select(i) for i in range(3))
        t, window = g.constant(TIMES), g.constant(HANN)
        sound = (-decay * t).exp() * (2 * np.pi * (frequency * t + 0.5 * glide * t.square())).sin()
        self.magnitudes = sound.stft(window, stride=[STRIDE]).abs()
        self.loss = (self.magnitudes - self.recorded).square().mean()


def magnitudes(theta: Array) -> Array:
    """Return the same spectrogram, computed by NumPy."""
    frequency, glide, decay = theta
    sound = np.exp(-decay * TIMES) * np.sin(2 * np.pi * (frequency * TIMES + 0.5 * glide * TIMES**2))
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::STRIDE]
    return np.abs(np.fft.rfft(frames * HANN))


def slope_by_differences(theta: Array, recorded: Array, step: float = 1e-4) -> Array:
    """Return central differences of NumPy's loss."""

    def loss(theta: Array) -> float:
        return float(np.mean((magnitudes(theta) - recorded) ** 2))

    return np.array([(loss(theta + h) - loss(theta - h)) / (2 * step) for h in step * np.eye(3)])


def work(client: gs.Client, steps: int) -> None:
    """Compare the gradients, then run gradient descent."""
    model, recorded = Spectrogram(), magnitudes(TRUE)
    descent = Adam({model.theta: START.copy()}, rate=0.1)
    for step in range(steps):
        answer = client.gradients(model.graph, {**descent.parameters, model.recorded: recorded}, of=model.loss)
        if step == 0:
            slope, other = answer.gradients[model.theta], slope_by_differences(START, recorded)
            print(f"gradient: {np.abs(slope - other).max() / np.abs(other).max():.1e} off at most, by differences")
        descent.step(answer)
    theta = descent.parameters[model.theta]
    print(f"found: {theta[0]:.3f} Hz, {theta[1]:.3f} Hz/s, {theta[2]:.4f} /s, made with 90, 60 and 2")


if __name__ == "__main__":
    run(work, __doc__, steps=400)
