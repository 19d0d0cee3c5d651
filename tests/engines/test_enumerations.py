"""The promises of tests/auditing/view/test_enumerations.py, kept for the slower engines too."""

from tests.auditing.view.test_enumerations import (  # noqa: F401 - pytest collects what it finds here
    test_a_view_by_hand_over_an_enumeration_is_read,
    test_an_emitted_view_is_proved_and_a_slip_found,
    test_members_are_known_and_scored_as_they_are,
    test_what_is_not_a_member_is_not_used_against_a_view,
)
