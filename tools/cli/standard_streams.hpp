#pragma once

#include <string>

namespace gatefold::cli {

// Where the caller has closed one of the three, makes it one that fails, so that no file which is opened later takes
// its number and receives what is printed.
void occupy_standard_streams();

void print(const std::string& text);    // to stdout, flushed. Throws checkpoint::InputError where that fails
void print_error(std::string message);  // one line on stderr; where that fails there is nobody left to tell

}  // namespace gatefold::cli
