"""ResNet-8: the smallest residual network for small images in colour, with group normalisation.

Batch normalisation fails where clients hold different labels, and its running means do not travel with the parameters;
federated learning uses group normalisation in its place (Hsieh et al. 2020, "The Non-IID Data Quagmire of Decentralized
Machine Learning"), here with two groups.
"""

from torch import Tensor, nn

from fl.data.dataset import Shape

GROUPS = 2
WIDTHS = (16, 32, 64)


def resnet8(labels: int, shape: Shape) -> nn.Module:
    """A convolution, three residual blocks of two convolutions each, and one fully connected layer.

    The second and third block halve height and width. The mean over what is left goes into the last layer, so that
    images of any size fit, and the number of parameters does not depend on it: 78,042 for ten labels and three
    channels.
    """
    first, *rest = WIDTHS
    layers: list[nn.Module] = [_convolution(shape.channels, first), nn.GroupNorm(GROUPS, first), nn.ReLU()]
    layers.append(Block(first, first, 1))
    width = first
    for wider in rest:
        layers.append(Block(width, wider, 2))
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, labels))


class Block(nn.Module):
    """Two 3 x 3 convolutions, and a shortcut around them: a 1 x 1 convolution where the sizes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            _convolution(inputs, outputs, stride), nn.GroupNorm(GROUPS, outputs), nn.ReLU(),
            _convolution(outputs, outputs), nn.GroupNorm(GROUPS, outputs),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.GroupNorm(GROUPS, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return maps [n, outputs, height / stride, width / stride]."""
        summed: Tensor = self.inner(x) + self.shortcut(x)
        return summed.relu()


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Without a bias, which the normalisation behind it would take away."""
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
