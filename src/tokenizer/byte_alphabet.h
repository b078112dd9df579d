// GPT-2's alphabet: every byte as one printable character, so that vocabularies of bytes can be stored as
// text. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019; its encoder.py.
#pragma once
#include <string>
#include <string_view>

namespace gimbal {

// The letter of a byte, in UTF-8 (one or two bytes).
std::string_view letter_of_byte(unsigned char byte);
// The bytes of a text in the alphabet. Characters outside of it stand for themselves.
std::string bytes_of_letters(std::string_view letters);

}  // namespace gimbal
