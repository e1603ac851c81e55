#include "store/client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <dunlin/error.hpp>

#include "text.hpp"

namespace dunlin::app::resp {
namespace {

constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};

Client::Answer answer_of(const redisReply& reply) {
  Client::Answer answer;
  switch (reply.type) {
    case REDIS_REPLY_ERROR:
      answer.kind = Client::Answer::Kind::error;
      answer.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_NIL:
      break;
    case REDIS_REPLY_INTEGER:
      answer.kind = Client::Answer::Kind::number;
      answer.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      answer.kind = Client::Answer::Kind::list;
      for (std::size_t i = 0; i < reply.elements; ++i)
        answer.list.push_back(answer_of(*reply.element[i]));
      break;
    default:
      answer.kind = Client::Answer::Kind::text;
      answer.text.assign(reply.str, reply.len);
  }
  return answer;
}

}  // namespace

void Client::Close::operator()(redisContext* context) const noexcept { redisFree(context); }

Client::Client(const Endpoint& endpoint, const std::string& password)
    : place_(endpoint.text()),
      context_(redisConnectWithTimeout(endpoint.address.c_str(), endpoint.port, kPatience)) {
  if (!context_) throw Error("store: there is no memory for a connection");
  if (context_->err != 0) complain();
  redisSetTimeout(context_.get(), kPatience);
  if (!password.empty()) ask({"AUTH", password});
}

void Client::complain() const {
  throw Error(fmt::format("store: no server at {}: {}; start one: dunlin store serve --resp {}",
                          place_, context_->errstr, place_));
}

Client::Answer Client::ask(const Words& words) {
  send(words);
  return take();
}

void Client::send(const Words& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(),
                             lengths.data()) != REDIS_OK)
    complain();
}

Client::Answer Client::take() {
  Answer answer = take_any();
  if (answer.kind == Answer::Kind::error) complain_of(answer);
  return answer;
}

Client::Answer Client::take_any() {
  void* raw = nullptr;
  if (redisGetReply(context_.get(), &raw) != REDIS_OK) complain();
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(raw),
                                                                      freeReplyObject);
  return answer_of(*reply);
}

bool Client::wait_for_reply(std::chrono::milliseconds most) {
  for (int all_sent = 0; all_sent == 0;)
    if (redisBufferWrite(context_.get(), &all_sent) != REDIS_OK) complain();
  pollfd one{.fd = context_->fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(most.count())) > 0;
}

void complain_of(const Client::Answer& error) {
  throw Error(fmt::format("the server says: {}", printable(error.text, 200)));
}

}  // namespace dunlin::app::resp
