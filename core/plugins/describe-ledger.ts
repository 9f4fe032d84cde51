/**
 * A ledger as plain data, to compare and to print: functions become `[function]`, schemas their
 * description.
 */
import { inspect } from 'node:util';
import Joi from 'joi';
import type { Ledger } from './instance/ledger.ts';

export function describeLedger(ledger: Ledger): unknown {
  return plain(ledger, []);
}

function plain(value: unknown, above: readonly object[]): unknown {
  if (typeof value === 'function') return '[function]';
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[circular]';
  if (isSchema(value)) return plain(value.describe(), [...above, value]);
  if (Array.isArray(value)) return value.map((item) => plain(item, [...above, value]));
  if (Object.getPrototypeOf(value) !== Object.prototype && Object.getPrototypeOf(value) !== null)
    return inspect(value);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, plain(item, [...above, value])]),
  );
}

function isSchema(value: object): value is { describe(): object } {
  try {
    return Joi.isSchema(value);
  } catch {
    // Joi throws for a schema of another Joi; described it cannot be.
    return false;
  }
}
