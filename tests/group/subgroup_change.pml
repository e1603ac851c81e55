/* How a subgroup that came at run time ends a generation, in one way for all of its members:
 * src/group/subgroup_leader.cpp and changing_subgroups.cpp as a model, for three members and three
 * views. docs/group.md gives the rules (GRP-D3, GRP-D4, GRP-D9) and the promises (GRP-A6, GRP-A7).
 *
 * The trim is the least that some members have received, and the order of the last messages depends
 * on it. So a value is the set of members whose receipts it takes: two values stand for two orders.
 *
 * How a view ends is decided as in view_change.pml. Here that is one step: a quorum has promised, and
 * any of these go on; the others of these leave. A member that is left behind, or is not told, or has
 * crashed, or whose messages are lost, takes no step for as long as it likes.
 *
 * The generation has any members of the first view, which are three. -DFIRST_VIEW=15 makes four of
 * them, which takes some minutes; with -DMEMBERS=7, the set of those in the generation, 20 s.
 *
 * Each of these fails: -DALONE, the leader acts at once; -DNO_MEMBERS and -DNO_QUORUM, it waits for
 * one half only of those that must accept; -DFORGOTTEN, what was accepted is not reported. */

#ifndef FIRST_VIEW
#define FIRST_VIEW 7
#endif

#define N 4
#define VIEWS 3
#define bit(i) (1 << (i))
#define has(set, i) (((set) & bit(i)) != 0)
#define count(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1) + (((set) >> 3) & 1))
#define lowest(set) (has(set, 0) -> 0 : (has(set, 1) -> 1 : (has(set, 2) -> 2 : 3)))
#define quorum(some, all) (2 * count(some) > count(all) || \
                           (2 * count(some) == count(all) && has(some, lowest(all))))

byte members;              /* of the generation: a set */
byte latest = 1;           /* the view that no decision has ended */
byte in_view[VIEWS + 1];   /* by view: the set of its members */
byte proposed[VIEWS + 1];  /* by view: the value that its leader proposed; 0: none */
byte accepted[VIEWS + 1];  /* by view: the set of the members that accepted it */
bool decided[VIEWS + 1];   /* by view: its leader knows that it is decided */
bool too_late[VIEWS + 1];  /* by view: it was proposed when a quorum had promised */

byte view[N];      /* by member: the view that it is in */
byte promised;     /* the set of those that are wedged in it */
byte in_row[N];    /* by member: the value that it accepted last; 0: none */
byte of_view[N];   /* ... and in which view */
byte ended_by[N];  /* by member: the value by which it has ended the generation */

#define works(m) (!has(promised, m))
#define here in_view[view[m]]
#define holders (here & members)

#ifdef ALONE
#define enough(v) has(accepted[v], lowest(in_view[v]))
#else
#ifdef NO_MEMBERS
#define all_holders(v) true
#else
#define all_holders(v) ((in_view[v] & members & ~accepted[v]) == 0)
#endif
#ifdef NO_QUORUM
#define some_quorum(v) true
#else
#define some_quorum(v) quorum(accepted[v], in_view[v])
#endif
#define enough(v) (all_holders(v) && some_quorum(v))
#endif

#ifdef FORGOTTEN
#define reported false
#else
#define reported true
#endif

/* GRP-D4: what a member has carried out counts; else what was accepted in the latest view; else the
 * receipts of those that are here. */
inline propose(m) {
  d_step {
    best = 0;
    value = holders;
    i = 0;
    do
    :: i < N ->
       if
       :: has(holders, i) && ended_by[i] != 0 ->
          best = VIEWS + 1;
          value = ended_by[i]
       :: has(holders, i) && ended_by[i] == 0 && of_view[i] > best && reported ->
          best = of_view[i];
          value = in_row[i]
       :: else
       fi;
       i++
    :: else -> break
    od;
    proposed[view[m]] = value;
    too_late[view[m]] = quorum(promised & here, here) || view[m] < latest;
    i = 0; best = 0; value = 0
  }
}

#define is_here(i) (!has(here, i) || view[i] == view[m])

proctype member(byte m) {
  byte i = 0, best = 0, value = 0;
end:
  do
  /* GRP-C4 */
  :: atomic { works(m) -> promised = promised | bit(m) }
  /* The next view, once this member is told. */
  :: atomic { !works(m) && view[m] < latest && has(in_view[view[m] + 1], m) ->
       view[m]++;
       promised = promised & ~bit(m) }
  /* GRP-D3, GRP-D4: the leader has heard of all members of its view. */
  :: atomic { works(m) && lowest(here) == m && proposed[view[m]] == 0 && holders != 0 &&
              is_here(0) && is_here(1) && is_here(2) && is_here(3) ->
       propose(m) }
  /* GRP-D9 */
  :: atomic { works(m) && proposed[view[m]] != 0 && !has(accepted[view[m]], m) ->
       accepted[view[m]] = accepted[view[m]] | bit(m);
       if
       :: has(members, m) ->
          in_row[m] = proposed[view[m]];
          of_view[m] = view[m]
       :: else
       fi }
  :: atomic { works(m) && lowest(here) == m && proposed[view[m]] != 0 && !decided[view[m]] &&
              enough(view[m]) ->
       decided[view[m]] = true }
  /* GRP-D5 */
  :: atomic { works(m) && has(members, m) && decided[view[m]] && has(accepted[view[m]], m) &&
              ended_by[m] == 0 ->
       ended_by[m] = proposed[view[m]] }
  od
}

/* GRP-A4: those that go on, and those that leave, are a quorum that has promised. */
proctype views() {
  byte together, survivors, m;
end:
  do
  :: atomic { latest < VIEWS ->
       together = 0;
       survivors = 0;
       do
       :: m < N && has(in_view[latest], m) && view[m] == latest && has(promised, m) ->
          if
          :: together = together | bit(m);
             survivors = survivors | bit(m)
          :: together = together | bit(m)
          :: skip
          fi;
          m++
       :: m < N && !(has(in_view[latest], m) && view[m] == latest && has(promised, m)) -> m++
       :: else -> break
       od;
       m = 0;
       if
       :: survivors != 0 && quorum(together, in_view[latest]) ->
          latest++;
          in_view[latest] = survivors
       :: else
       fi;
       together = 0;
       survivors = 0 }
  od
}

/* GRP-A6  No two members end the generation by different values, whether they go on or not.
 * GRP-A7  A leader that has been replaced decides nothing that it proposes then. */
#define same(x, y) (ended_by[x] == 0 || ended_by[y] == 0 || ended_by[x] == ended_by[y])
#define in_time(v) (!decided[v] || !too_late[v])

active proctype monitor() {
end:
  atomic { !(same(0, 1) && same(0, 2) && same(0, 3) && same(1, 2) && same(1, 3) && same(2, 3) &&
             in_time(1) && in_time(2) && in_time(3)) ->
    assert(false) }
}

init {
  atomic {
    in_view[1] = FIRST_VIEW;
#ifdef MEMBERS
    members = MEMBERS;
#else
    do
    :: members < FIRST_VIEW -> members++
    :: members > 0 -> break
    od;
#endif
    view[0] = 1; view[1] = 1; view[2] = 1; view[3] = 1;
    run member(0); run member(1); run member(2); run views();
    if
    :: has(FIRST_VIEW, 3) -> run member(3)
    :: else
    fi
  }
}
