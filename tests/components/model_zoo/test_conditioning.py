"""Labels as images, number by number."""

import numpy as np
import pytest

from components.interfaces import UserError
from components.model_zoo.conditioning import LabelPlanes, LabelStripes


def test_plane_of_the_class_is_one_and_the_others_zero() -> None:
    planes = LabelPlanes(2, 3, 4)(np.array([1, 3], "int32")).numpy()
    by_hand = np.zeros((2, 2, 3, 4))
    by_hand[0, :, :, 1] = by_hand[1, :, :, 3] = 1
    np.testing.assert_array_equal(planes, by_hand)


def test_stripe_of_the_class_is_one_and_leftover_numbers_are_zero() -> None:
    stripes = LabelStripes(2, 4, 3)(np.array([0, 2], "int32")).numpy()[..., 0]  # stripes of floor(8 / 3) = 2
    np.testing.assert_array_equal(stripes, [[[1, 1, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 0], [1, 1, 0, 0]]])


def test_stripes_without_room_are_refused() -> None:
    with pytest.raises(UserError, match="Use channels=3"):
        LabelStripes(2, 2, 10)
