/* How the members of a view agree on the next one: src/group/view_change.cpp as a model, for three
 * members of which any may crash and any may suspect another that is alive, as often as CRASHES and
 * MISTAKES say. docs/group.md gives the rules (GRP-C1 to GRP-C8) and the promises (GRP-A1 to GRP-A3).
 *
 * A member writes only its own row. Others read their copy of it, which catches up at any time until
 * they suspect its owner: then it stands still. A value is the set of members that go on, and JOINER
 * if the next view has a joiner, too.
 *
 * With -DPLANNER=0 that member has planned with a joiner (GRP-N2 to GRP-N4): the members link to the
 * joiner at any time, tell the planner so, and the planner may make the plan void until it is
 * wedged. In a view only the first member plans: the next one leads when that is suspected. */

#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef MISTAKES
#define MISTAKES 1
#endif

#define N 3
#define bit(i) (1 << (i))
#define has(set, i) (((set) & bit(i)) != 0)
/* More than half of three. */
#define quorum(set) ((set) == 3 || (set) >= 5)
#define JOINER 8
#define members_of(value) ((value) & 7)

typedef Row {
  byte suspects;  /* a set */
  byte promised;  /* the leader's rank + 1 */
  byte accepted;  /* the same, of the value */
  byte value;     /* a set, and JOINER */
  bool ended      /* the value is decided */
};
typedef Table {
  Row row[N]
};

Table at[N];  /* at[m].row[m] is m's own */
bool crashed[N];
bool stopped[N];
byte decided[N];
byte wedged = 0;  /* the set of those who have stopped delivering in the old view */
byte crashes = CRASHES;
byte mistakes = MISTAKES;
#ifdef PLANNER
byte linked = 0;  /* the set of those that are linked to the joiner, */
byte heard = 0;   /* and of those of which the planner knows it */
bool is_void = false;
/* GRP-N4 */
#define ready(m) ((m) == PLANNER && !is_void && (7 & ~at[m].row[m].suspects & ~heard) == 0)
#define reaches(value) (((value) & JOINER) == 0 || (members_of(value) & ~linked) == 0)
#else
#define ready(m) false
#define reaches(value) true
#endif

#define undecided(m) (!crashed[m] && !stopped[m] && decided[m] == 0)
#define my at[m].row[m]
#define lowest_alive(m) (has(at[m].row[m].suspects, 0) -> (has(at[m].row[m].suspects, 1) -> 2 : 1) : 0)
#define accepted_at(m, b) ((at[m].row[0].accepted == b) + 2 * (at[m].row[1].accepted == b) + \
                           4 * (at[m].row[2].accepted == b))

inline catch_up(m, i) {
  at[m].row[i].suspects = at[i].row[i].suspects;
  at[m].row[i].promised = at[i].row[i].promised;
  at[m].row[i].accepted = at[i].row[i].accepted;
  at[m].row[i].value = at[i].row[i].value;
  at[m].row[i].ended = at[i].row[i].ended
}

/* GRP-C5: a value that may be decided already; otherwise all that have promised. */
inline propose(m) {
  d_step {
    best = 0;
    new_value = (ready(m) -> (7 & ~my.suspects) | JOINER : 7 & ~my.suspects);
    i = 0;
    do
    :: i < N ->
       if
       :: !has(my.suspects, i) && at[m].row[i].accepted > best ->
          best = at[m].row[i].accepted;
          new_value = at[m].row[i].value
       :: else
       fi;
       i++
    :: else -> break
    od;
    my.value = new_value;
    my.accepted = m + 1;
    i = 0; best = 0; new_value = 0
  }
}

proctype member(byte m) {
  byte i = 0, best = 0, new_value = 0, b = 0;
  do
  /* The fabric places rows in order; a copy that is never made was lost with its writer. */
  :: atomic { undecided(m) ->
       if
       :: i = 0
       :: i = 1
       :: i = 2
       fi;
       if
       :: i != m && !has(my.suspects, i) -> catch_up(m, i)
       :: else
       fi;
       i = 0 }
  /* GRP-C1 */
  :: atomic { undecided(m) ->
       if
       :: i = 0
       :: i = 1
       :: i = 2
       fi;
       if
       :: i != m && !has(my.suspects, i) && crashed[i] -> my.suspects = my.suspects | bit(i)
       :: i != m && !has(my.suspects, i) && !crashed[i] && mistakes > 0 ->
          mistakes--;
          my.suspects = my.suspects | bit(i)
       :: else
       fi;
       i = 0 }
  /* GRP-C2: whoever does not follow us will not go on with us. */
  :: atomic { undecided(m) && lowest_alive(m) == m ->
       i = 0;
       do
       :: i < N ->
          if
          :: i != m && !has(my.suspects, i) && has(at[m].row[i].suspects, m) ->
             my.suspects = my.suspects | bit(i)
          :: else
          fi;
          i++
       :: else -> break
       od;
       i = 0 }
#ifdef PLANNER
  /* GRP-N2: each member that is asked links, and the planner hears of it later. */
  :: atomic { undecided(m) && !is_void && !has(linked, m) ->
       linked = linked | bit(m) }
  :: atomic { undecided(m) && m == PLANNER && !is_void && heard != linked ->
       heard = linked }
  /* GRP-N3 */
  :: atomic { undecided(m) && m == PLANNER && !is_void && !has(wedged, m) ->
       is_void = true;
       heard = 0 }
  :: atomic { undecided(m) && is_void && has(linked, m) ->
       linked = linked & ~bit(m) }
#endif
  /* GRP-C3 */
  :: atomic { undecided(m) && my.promised < m + 1 && (my.suspects != 0 || ready(m)) &&
              lowest_alive(m) == m ->
       my.promised = m + 1;
       wedged = wedged | bit(m) }
  /* GRP-C4 */
  :: atomic { undecided(m) && lowest_alive(m) < m &&
              my.promised < lowest_alive(m) + 1 &&
              at[m].row[lowest_alive(m)].promised == lowest_alive(m) + 1 ->
       my.promised = lowest_alive(m) + 1;
       wedged = wedged | bit(m) }
  /* GRP-C5 */
  :: atomic { undecided(m) && my.promised == m + 1 && my.accepted < m + 1 &&
              quorum(7 & ~my.suspects) &&
              (has(my.suspects, 0) || at[m].row[0].promised == m + 1) &&
              (has(my.suspects, 1) || at[m].row[1].promised == m + 1) &&
              (has(my.suspects, 2) || at[m].row[2].promised == m + 1) ->
       propose(m) }
  /* GRP-C6 */
  :: atomic { undecided(m) && my.promised > 0 && my.promised != m + 1 &&
              my.accepted < my.promised &&
              at[m].row[my.promised - 1].accepted == my.promised ->
       my.value = at[m].row[my.promised - 1].value;
       my.accepted = my.promised }
  /* GRP-C7 */
  :: atomic { undecided(m) ->
       if
       :: at[m].row[0].ended -> decided[m] = at[m].row[0].value
       :: at[m].row[1].ended -> decided[m] = at[m].row[1].value
       :: at[m].row[2].ended -> decided[m] = at[m].row[2].value
       :: else ->
          b = 1;
          do
          :: b <= N && quorum(accepted_at(m, b)) ->
             if
             :: at[m].row[0].accepted == b -> decided[m] = at[m].row[0].value
             :: at[m].row[1].accepted == b -> decided[m] = at[m].row[1].value
             :: else -> decided[m] = at[m].row[2].value
             fi;
             break
          :: b <= N && !quorum(accepted_at(m, b)) -> b++
          :: else -> break
          od;
          b = 0
       fi;
       if
       :: decided[m] != 0 ->
          my.value = decided[m];
          my.ended = true
       :: else
       fi }
  /* GRP-C8 */
  :: atomic { undecided(m) && !quorum(7 & ~my.suspects) ->
       stopped[m] = true }
  :: atomic { !crashed[m] && crashes > 0 ->  /* also of one who has decided */
       crashes--;
       crashed[m] = true }
  :: !undecided(m) -> break
  od
}

/* GRP-A1  Two members never decide differently.
 * GRP-A2  Only members that have stopped delivering in the old view go on, so that its last messages
 *     are known.
 * GRP-A3  The next view has a quorum of this one.
 * GRP-N4  If it has the joiner, each member that goes on is linked to that. */
#define agree(x, y) (decided[x] == 0 || decided[y] == 0 || decided[x] == decided[y])
#define sound(x) (decided[x] == 0 || ((members_of(decided[x]) & ~wedged) == 0 && \
                                      quorum(members_of(decided[x])) && reaches(decided[x])))

active proctype monitor() {
end:
  atomic { !(agree(0, 1) && agree(0, 2) && agree(1, 2) && sound(0) && sound(1) && sound(2)) ->
    assert(false) }
}

init {
  atomic { run member(0); run member(1); run member(2) }
}
