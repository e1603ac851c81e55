package main

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A transaction reads some keys and then writes some, at one moment.
type transaction struct {
	reads, writes map[string]string
	answered      bool
}

func pairsOf(field string) (map[string]string, error) {
	pairs := map[string]string{}
	if field == absent {
		return pairs, nil
	}
	for _, pair := range strings.Split(field, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("wanted KEY=VALUE, not %q", pair)
		}
		pairs[key] = value
	}
	return pairs, nil
}

func transactionOf(reads, writes string, answered bool) (transaction, error) {
	t := transaction{answered: answered}
	var err error
	if t.reads, err = pairsOf(reads); err != nil {
		return t, err
	}
	t.writes, err = pairsOf(writes)
	return t, err
}

// The state of all keys is one text, as Porcupine compares states: KEY=VALUE,... in order.
func textOf(pairs map[string]string) string {
	var all []string
	for key, value := range pairs {
		all = append(all, key+"="+value)
	}
	sort.Strings(all)
	if len(all) == 0 {
		return absent
	}
	return strings.Join(all, ",")
}

// A transaction without an answer, which would have read something else, has not happened.
func modelOfTransactions() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return absent },
		Step: func(state, in, out interface{}) (bool, interface{}) {
			t := in.(transaction)
			pairs, _ := pairsOf(state.(string))
			for key, value := range t.reads {
				held, found := pairs[key]
				if !found {
					held = absent
				}
				if held != value {
					return !t.answered, state
				}
			}
			for key, value := range t.writes {
				pairs[key] = value
			}
			return true, textOf(pairs)
		},
	}
}

func textOfTransactions(h *history) string {
	var b strings.Builder
	sort.Slice(h.operations, func(i, j int) bool { return h.operations[i].Call < h.operations[j].Call })
	for _, operation := range h.operations {
		t, end := operation.Input.(transaction), "?"
		if operation.Return != math.MaxInt64 {
			end = fmt.Sprint(operation.Return)
		}
		fmt.Fprintf(&b, "  client %d: reads %s, writes %s, from %d to %s\n", operation.ClientId,
			textOf(t.reads), textOf(t.writes), operation.Call, end)
	}
	return b.String()
}
