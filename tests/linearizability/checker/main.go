// Command check reads histories from its standard input and reports those that are not linearizable.
// docs/testing.md describes the format. One process checks any number of histories, one after the
// other, as soon as it has read them; Porcupine, which is not ours, decides.
//
// Exit status: 0, all are linearizable; 1, some are not, or took too long; 2, the input is malformed.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// What a register holds before the first put, and what a map holds for a key that it does not have.
const (
	initialOfRegister = "0"
	absent            = "-"
)

// A history that needs longer than this is reported as undecided, which counts as wrong.
const timeLimit = 2 * time.Minute

type input struct {
	put   bool // an erase puts `absent`
	key   string
	value string
}

// A history is a name, a model, and what its clients did.
type history struct {
	name         string
	initial      string
	transactions bool
	operations   []porcupine.Operation
}

func (h *history) model() porcupine.Model {
	if h.transactions {
		return modelOfTransactions()
	}
	return model(h.initial)
}

// The model of one key: its state is its value. A put (or an erase) sets it, a get returns it.
func model(initial string) porcupine.Model {
	return porcupine.Model{
		Partition: byKey,
		Init:      func() interface{} { return initial },
		Step: func(state, in, out interface{}) (bool, interface{}) {
			operation := in.(input)
			if operation.put {
				return true, operation.value
			}
			return out.(string) == state.(string), state
		},
	}
}

func byKey(all []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, operation := range all {
		key := operation.Input.(input).key
		keys[key] = append(keys[key], operation)
	}
	var parts [][]porcupine.Operation
	for _, part := range keys {
		parts = append(parts, withoutUnseen(part))
	}
	return parts
}

// An unanswered put may happen at any later time, or never. If no get returned its value, an order
// with it is as good as the same order without it, and the search without it is shorter by far.
func withoutUnseen(part []porcupine.Operation) []porcupine.Operation {
	seen := map[string]bool{}
	for _, operation := range part {
		if !operation.Input.(input).put {
			seen[operation.Output.(string)] = true
		}
	}
	var kept []porcupine.Operation
	for _, operation := range part {
		in := operation.Input.(input)
		if in.put && operation.Return == math.MaxInt64 && !seen[in.value] {
			continue
		}
		kept = append(kept, operation)
	}
	return kept
}

// check reports what is wrong with the history, and nothing if nothing is.
func check(h *history) string {
	switch porcupine.CheckOperationsTimeout(h.model(), h.operations, timeLimit) {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return fmt.Sprintf("%s is not linearizable:\n%s", h.name, text(h))
	default:
		return fmt.Sprintf("%s is undecided after %s (%d operations)\n", h.name, timeLimit, len(h.operations))
	}
}

// text lists the keys that are not linearizable alone, by the time at which each operation began.
func text(h *history) string {
	var b strings.Builder
	if h.transactions {
		return textOfTransactions(h)
	}
	for _, part := range byKey(h.operations) {
		if porcupine.CheckOperationsTimeout(model(h.initial), part, timeLimit) == porcupine.Ok {
			continue
		}
		sort.Slice(part, func(i, j int) bool { return part[i].Call < part[j].Call })
		for _, operation := range part {
			in := operation.Input.(input)
			what, end := "get "+in.key+" "+operation.Output.(string), "?"
			if in.put {
				what = "put " + in.key + " " + in.value
			}
			if operation.Return != math.MaxInt64 {
				end = strconv.FormatInt(operation.Return, 10)
			}
			fmt.Fprintf(&b, "  client %d: %s from %d to %s\n", operation.ClientId, what, operation.Call, end)
		}
	}
	return b.String()
}

func begin(fields []string) (*history, error) {
	if len(fields) != 3 {
		return nil, fmt.Errorf("wanted: history NAME MODEL")
	}
	switch fields[2] {
	case "register":
		return &history{name: fields[1], initial: initialOfRegister}, nil
	case "map":
		return &history{name: fields[1], initial: absent}, nil
	case "transactions":
		return &history{name: fields[1], initial: absent, transactions: true}, nil
	}
	return nil, fmt.Errorf("there is no model %q: register, map or transactions", fields[2])
}

func operation(h *history, fields []string) (porcupine.Operation, error) {
	none := porcupine.Operation{}
	if len(fields) != 6 {
		return none, fmt.Errorf("wanted: CLIENT put|get KEY VALUE CALL RETURN")
	}
	if h.transactions != (fields[1] == "transaction") {
		return none, fmt.Errorf("%q does not go with the model of the history", fields[1])
	}
	client, err := strconv.Atoi(fields[0])
	if err != nil {
		return none, fmt.Errorf("client %q is no number", fields[0])
	}
	call, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		return none, fmt.Errorf("stamp %q is no number", fields[4])
	}
	end := int64(math.MaxInt64)
	if fields[5] != "-" {
		if end, err = strconv.ParseInt(fields[5], 10, 64); err != nil || end < call {
			return none, fmt.Errorf("stamp %q is no number from %d on", fields[5], call)
		}
	}
	if h.transactions {
		in, err := transactionOf(fields[2], fields[3], end != math.MaxInt64)
		return porcupine.Operation{ClientId: client, Input: in, Call: call, Output: "", Return: end}, err
	}
	in := input{put: fields[1] == "put", key: fields[2]}
	if in.put {
		in.value = fields[3]
		return porcupine.Operation{ClientId: client, Input: in, Call: call, Output: "", Return: end}, nil
	}
	if fields[1] != "get" || fields[5] == "-" {
		return none, fmt.Errorf("wanted a put, or a get that has returned, not %q", fields[1])
	}
	return porcupine.Operation{ClientId: client, Input: in, Call: call, Output: fields[3], Return: end}, nil
}

type totals struct{ histories, operations, wrong int }

func (t *totals) add(h *history) {
	if h == nil {
		return
	}
	t.histories++
	t.operations += len(h.operations)
	if complaint := check(h); complaint != "" {
		t.wrong++
		fmt.Print(complaint)
	}
}

func run(from io.Reader) (totals, error) {
	var sum totals
	var current *history
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		var err error
		if fields[0] == "history" {
			sum.add(current)
			current, err = begin(fields)
		} else if current == nil {
			err = fmt.Errorf("an operation before the first history")
		} else {
			var next porcupine.Operation
			next, err = operation(current, fields)
			current.operations = append(current.operations, next)
		}
		if err != nil {
			return sum, fmt.Errorf("line %d: %v", number, err)
		}
	}
	sum.add(current)
	return sum, lines.Err()
}

func main() {
	sum, err := run(os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "check: %v\n", err)
		os.Exit(2)
	}
	fmt.Printf("checked %d histories, %d operations, %d wrong\n", sum.histories, sum.operations, sum.wrong)
	if sum.wrong > 0 {
		os.Exit(1)
	}
}
