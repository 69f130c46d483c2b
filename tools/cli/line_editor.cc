#include "tools/cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "tools/cli/history_file.h"

namespace skep::cli {
namespace {

constexpr const char* kGrey = "\033[90m";
constexpr const char* kPlain = "\033[0m";
constexpr const char* kClearToEnd = "\033[K";

// Whether a signal has come since the handlers were installed.
volatile sig_atomic_t got_interrupt = 0;
volatile sig_atomic_t got_resize = 0;
volatile sig_atomic_t got_stop = 0;

void OnInterrupt(int) { got_interrupt = 1; }
void OnResize(int) { got_resize = 1; }
void OnStop(int) { got_stop = 1; }

// Lets signals reach their handlers only while the thread waits with mask().
class Signals {
 public:
  Signals() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < std::size(kHandlers); ++i) {
      struct sigaction action = {};
      action.sa_handler = kHandlers[i].second;
      sigaction(kHandlers[i].first, &action, &before_[i]);
      sigaddset(&blocked, kHandlers[i].first);
    }
    sigprocmask(SIG_BLOCK, &blocked, &mask_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    for (size_t i = 0; i < std::size(kHandlers); ++i) {
      sigaction(kHandlers[i].first, &before_[i], nullptr);
    }
  }

  const sigset_t& mask() const { return mask_; }

 private:
  static constexpr std::pair<int, void (*)(int)> kHandlers[] = {
      {SIGINT, OnInterrupt}, {SIGWINCH, OnResize}, {SIGTSTP, OnStop}};

  struct sigaction before_[std::size(kHandlers)];
  sigset_t mask_;
};

// Returns how many columns UTF-8 text takes; bytes that are no UTF-8 take one each.
size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  std::mbstate_t state = {};
  while (!text.empty()) {
    wchar_t wide = 0;
    const size_t used = std::mbrtowc(&wide, text.data(), text.size(), &state);
    const bool is_character = used != 0 && used <= text.size();
    columns += is_character ? static_cast<size_t>(std::max(wcwidth(wide), 0)) : 1;
    text.remove_prefix(is_character ? used : 1);
  }
  return columns;
}

size_t TerminalColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string CommonPrefix(const std::vector<std::string>& words) {
  std::string prefix = words[0];
  for (const std::string& word : words) {
    const auto differ = std::ranges::mismatch(prefix, word);
    prefix.erase(differ.in1, prefix.end());
  }
  return prefix;
}

void Write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Lists words below the line, in columns.
void List(const std::vector<std::string>& words) {
  const size_t width = std::ranges::max(words, {}, &std::string::size).size() + 2;
  const size_t columns = std::max<size_t>(1, TerminalColumns() / width);
  for (size_t i = 0; i < words.size(); ++i) {
    Write(i % columns == 0 ? "\n" : "");
    Write(words[i] + std::string(width - words[i].size(), ' '));
  }
  Write("\n");
}

}  // namespace

class LineEditor::Impl {
 public:
  explicit Impl(Help help) : help_(std::move(help)) {
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    const char* const terminal = std::getenv("TERM");
    draws_hints_ = terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, static_cast<int>(HistoryFile::kLinesMax));
    history(history_, &event, H_SETUNIQUE, 1);
    editor_ = el_init("skep-cli", stdin, stdout, stderr);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_PROMPT, &Impl::Prompt);
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, &Impl::GetCharacter);
    // el_set, the function for narrow strings, leaks copies of them.
    el_wset(editor_, EL_ADDFN, L"skep-complete", L"completes a word", &Impl::Complete);
    el_set(editor_, EL_BIND, "^I", "skep-complete", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // By default a Ctrl-C discards typed input and pending output, which a moment later is the next
    // prompt.
    for (const char* const mode : {"-d", "-x"}) {
      el_set(editor_, EL_SETTY, mode, "+noflsh", nullptr);
    }
    el_source(editor_, nullptr);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    el_end(editor_);
    history_end(history_);
  }

  Event Read(const std::string& prompt, std::string* line) {
    prompt_ = prompt;
    int count = 0;
    const char* const text = ReadText(&count);
    if (got_interrupt != 0) {
      Write("^C\n");
      el_set(editor_, EL_PREP_TERM, 0);
      return Event::kInterrupted;
    }
    if (text == nullptr || count <= 0) return Event::kEnd;
    *line = std::string_view(text, static_cast<size_t>(count));
    while (line->ends_with('\n') || line->ends_with('\r')) line->pop_back();
    return Event::kLine;
  }

  void Remember(const std::string& line) {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
  }

 private:
  // A signal that is sent after the line was typed has arrived when this returns.
  const char* ReadText(int* count) {
    const Signals signals;
    signals_ = &signals;
    got_interrupt = 0;
    // The terminal is prepared before the prompt, so that it does not echo early input itself.
    el_set(editor_, EL_PREP_TERM, 1);
    el_resize(editor_);
    const char* const text = el_gets(editor_, count);
    signals_ = nullptr;
    return text;
  }

  static Impl* Of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<Impl*>(data);
  }

  static char* Prompt(EditLine* editor) { return Of(editor)->prompt_.data(); }

  // ---- Completion ----

  static unsigned char Complete(EditLine* editor, wint_t) {
    const LineInfo* const info = el_line(editor);
    const std::string before(info->buffer, info->cursor);
    const std::vector<std::string> words = Of(editor)->help_.complete(before);
    if (words.empty()) return CC_REFRESH_BEEP;
    const size_t typed = before.size() - (before.rfind(' ') + 1);
    std::string word = CommonPrefix(words);
    if (words.size() == 1) word += ' ';
    if (words.size() > 1 && word.size() <= typed) {
      List(words);
      return CC_REDISPLAY;
    }
    el_deletestr(editor, static_cast<int>(typed));
    el_insertstr(editor, word.c_str());
    return CC_REFRESH;
  }

  // ---- Keys and hints ----

  // Returns 1 for a character, 0 at the end, -1 for an error or a Ctrl-C.
  static int GetCharacter(EditLine* editor, wchar_t* character) {
    Impl& self = *Of(editor);
    const bool has_hint = self.DrawHint();
    const int result = self.WaitForCharacter(character);
    if (has_hint) {
      Write(kClearToEnd);
      std::fflush(stdout);
    }
    return result;
  }

  int WaitForCharacter(wchar_t* character) {
    std::mbstate_t state = {};
    for (;;) {
      char byte = 0;
      const int got = ReadByte(&byte);
      if (got <= 0) return got;
      const size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-2)) continue;  // an unfinished character
      if (used != static_cast<size_t>(-1)) return 1;
      state = {};  // a byte of no character is skipped
    }
  }

  int ReadByte(char* byte) {
    for (;;) {
      pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      const int ready = ppoll(&terminal, 1, nullptr, &signals_->mask());
      if (got_interrupt != 0) return -1;
      if (got_stop != 0) Stop();
      if (got_resize != 0) Redraw();
      if (ready > 0) return static_cast<int>(read(STDIN_FILENO, byte, 1));
      if (ready < 0 && errno != EINTR) return -1;
    }
  }

  // Stops this process, with the terminal as it was, until the shell continues it.
  void Stop() {
    got_stop = 0;
    el_set(editor_, EL_PREP_TERM, 0);
    raise(SIGSTOP);
    el_set(editor_, EL_PREP_TERM, 1);
    Redraw();
  }

  void Redraw() {
    got_resize = 0;
    el_resize(editor_);
    el_set(editor_, EL_REFRESH);
  }

  // Draws the hint. Returns whether there is one now. It never reaches the last column, so that it
  // does not wrap.
  bool DrawHint() {
    if (!draws_hints_) return false;
    const LineInfo* const info = el_line(editor_);
    if (info->cursor != info->lastchar || info->buffer == info->lastchar) return false;
    const std::string line(info->buffer, info->lastchar);
    std::string hint = help_.hint(line);
    const size_t columns = TerminalColumns();
    const size_t column = (ColumnsOf(prompt_) + ColumnsOf(line)) % columns;
    hint = hint.substr(0, columns - column - 1);
    if (hint.empty()) return false;
    Write(kGrey + hint + kPlain + "\033[" + std::to_string(ColumnsOf(hint)) + "D");
    std::fflush(stdout);
    return true;
  }

  const Help help_;
  History* history_ = nullptr;
  EditLine* editor_ = nullptr;
  std::string prompt_;
  bool draws_hints_ = false;
  const Signals* signals_ = nullptr;
};

LineEditor::LineEditor(Help help) : impl_(std::make_unique<Impl>(std::move(help))) {}
LineEditor::~LineEditor() = default;
LineEditor::Event LineEditor::Read(const std::string& prompt, std::string* line) {
  return impl_->Read(prompt, line);
}
void LineEditor::Remember(const std::string& line) { impl_->Remember(line); }

bool IsConversation() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

}  // namespace skep::cli
