#pragma once

/// A child that a member forks has the member's objects, but is no member.
namespace dunlin {

/// An object that a forked child must not use as its parent does. Before each fork before_fork() is
/// called, then in_parent() in the parent and in_child() in the child, before fork() returns there.
/// They may use nothing but this object's memory and system calls. Any thread may make and destroy
/// such objects.
class ForkAware {
 public:
  virtual ~ForkAware();
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  // An object under construction has nothing yet.
  virtual void before_fork() noexcept {}
  virtual void in_parent() noexcept {}
  virtual void in_child() noexcept {}

 protected:
  ForkAware();
};

}  // namespace dunlin
