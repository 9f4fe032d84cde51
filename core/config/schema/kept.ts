/**
 * `make`, asked once for each object and as long as that lives: for what is costly to make of parts that stay the
 * same while others change.
 */
export function kept<K extends object, V>(make: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { readonly made: V }>();
  return (of) => {
    const entry = known.get(of) ?? { made: make(of) };
    known.set(of, entry);
    return entry.made;
  };
}
