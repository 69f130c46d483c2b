// questions.h: how the benchmark of the hook and the programs of questions.bpf.c share frames. C,
// also compiled for BPF.
#pragma once

#include <stdint.h>

#define XDP_QUESTIONS 4096u
#define XDP_QUESTION_WORDS 16u

// A frame with a question, and zeroes up to the end.
struct XdpQuestion {
  uint64_t words[XDP_QUESTION_WORDS];
};

struct XdpQuestionsConfig {
  uint32_t interface;  // where `send` sends to
  uint32_t unused;
};
