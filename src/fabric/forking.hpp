#pragma once

/// A child that a member forks has the member's objects, but is no member.
namespace dunlin {

/// An object that a forked child must not use as its parent does. In each child, before fork()
/// returns there, in_child() is called, which may use nothing but this object's memory and system
/// calls. Any thread may make and destroy such objects.
class ForkAware {
 public:
  virtual ~ForkAware();
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  virtual void in_child() noexcept {}  // an object under construction has nothing yet

 protected:
  ForkAware();
};

}  // namespace dunlin
