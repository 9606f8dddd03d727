package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mask stands for every secret, whatever its length.
const mask = "********"

var decimal = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)

// setText parses text, from a variable or a default tag, into v and checks it.
// v is untouched on error. Errors hold the value only when it is no secret.
func (f *field) setText(v reflect.Value, text string) error {
	next := reflect.New(f.typ).Elem()
	if f.typ.Kind() != reflect.Slice {
		if err := f.parse(next, text); err != nil {
			return err
		}
	} else {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			item := reflect.New(f.typ.Elem()).Elem()
			if err := f.parse(item, part); err != nil {
				return err
			}
			next = reflect.Append(next, item)
		}
	}
	if err := f.check(next); err != nil {
		return err
	}
	v.Set(next)
	return nil
}

// parse reads one scalar. Spaces around anything but a string do not matter.
func (f *field) parse(v reflect.Value, text string) error {
	if v.Kind() == reflect.String {
		v.SetString(text)
		return nil
	}
	text = strings.TrimSpace(text)
	switch v.Kind() {
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			v.SetBool(true)
		case "false", "0", "no", "off":
			v.SetBool(false)
		default:
			return f.wrong("true or false", text)
		}
		return nil
	case reflect.Float32, reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || v.OverflowFloat(n) {
			return f.wrong("a number", text)
		}
		v.SetFloat(n)
		return nil
	default:
		return f.parseInteger(v, text)
	}
}

func (f *field) parseInteger(v reflect.Value, text string) error {
	if !decimal.MatchString(text) { // no fractions, exponents, octal, hexadecimal or underscores
		return f.wrong("a whole number", text)
	}
	if v.CanUint() {
		n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 64)
		if err != nil || v.OverflowUint(n) {
			return f.wrong("a whole number in range", text)
		}
		v.SetUint(n)
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v.OverflowInt(n) {
		return f.wrong("a whole number in range", text)
	}
	if f.unit != 0 {
		if limit := math.MaxInt64 / int64(f.unit); n > limit || n < -limit {
			return f.wrong("a whole number in range", text)
		}
		n *= int64(f.unit)
	}
	v.SetInt(n)
	return nil
}

// check applies the bounds and the enumeration.
func (f *field) check(v reflect.Value) error {
	if f.typ.Kind() != reflect.Slice {
		return f.checkOne(v)
	}
	if n := float64(v.Len()); f.min != nil && n < *f.min || f.max != nil && n > *f.max {
		return fmt.Errorf("want %s, got %d", f.bounds("items"), v.Len())
	}
	if f.Enum == nil {
		return nil
	}
	for i := range v.Len() {
		if err := f.checkEnum(v.Index(i).String()); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) checkOne(v reflect.Value) error {
	var n float64
	unit := ""
	switch {
	case v.Kind() == reflect.String:
		if f.Enum != nil {
			return f.checkEnum(v.String())
		}
		if v.Len() == 0 {
			return nil
		}
		n, unit = float64(utf8.RuneCountInString(v.String())), "characters"
	case v.Kind() == reflect.Bool:
		return nil
	case v.CanUint():
		n = float64(v.Uint())
	case v.CanFloat():
		n = v.Float()
	case f.unit != 0:
		n = float64(v.Int()) / float64(f.unit)
	default:
		n = float64(v.Int())
	}
	if (f.min == nil || n >= *f.min) && (f.max == nil || n <= *f.max) {
		return nil
	}
	if f.Secret {
		return fmt.Errorf("want %s", f.bounds(unit))
	}
	return fmt.Errorf("want %s, got %s", f.bounds(unit), strconv.FormatFloat(n, 'f', -1, 64))
}

func (f *field) checkEnum(text string) error {
	if slices.Contains(f.Enum, text) {
		return nil
	}
	if guess := nearest(text, f.Enum); guess != "" && !f.Secret {
		return fmt.Errorf("want %s, got %q; did you mean %s?", strings.Join(f.Enum, " or "), shorten(text), guess)
	}
	return f.wrong(strings.Join(f.Enum, " or "), text)
}

func (f *field) bounds(unit string) string {
	var text string
	switch {
	case f.min != nil && f.max != nil:
		text = f.Min + " to " + f.Max
	case f.min != nil:
		text = "at least " + f.Min
	default:
		text = "at most " + f.Max
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

func (f *field) wrong(want, got string) error {
	if f.Secret {
		return errors.New("want " + want + "; the value is not shown")
	}
	return fmt.Errorf("want %s, got %q", want, shorten(got))
}

// shorten keeps error messages readable.
func shorten(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}

func (f *field) shown(dst reflect.Value) any { return f.show(f.in(dst)) }

// show is the value for reports: as in JSON, or masked.
func (f *field) show(v reflect.Value) any {
	if f.Secret {
		if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			return ""
		}
		return mask
	}
	return plain(v, f.unit)
}

// plain is v as encoding/json would decode it, but with whole numbers whole.
func plain(v reflect.Value, unit time.Duration) any {
	switch {
	case v.Kind() == reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = plain(v.Index(i), unit)
		}
		return items
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	case unit != 0:
		return v.Int() / int64(unit)
	default:
		return v.Int()
	}
}
