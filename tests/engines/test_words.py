"""The promises of tests/backends/sql/test_words.py, kept for the slower engines too."""

from tests.backends.sql.test_words import (  # noqa: F401 - pytest collects what it finds here
    test_a_table_with_words_is_scored_where_it_is,
    test_codes_that_lost_their_zeros_are_refused_and_scored_as_texts,
    test_every_form_answers_as_the_program_and_is_proved,
    test_hostile_columns_and_sessions_change_nothing,
    test_hostile_words_are_compared_as_they_are,
    test_numbers_that_an_engine_writes_otherwise_are_refused,
    test_other_columns_of_words_are_compared_by_their_text,
    test_random_programs_answer_as_defined_and_are_proved,
    test_whole_numbers_can_be_words,
)
