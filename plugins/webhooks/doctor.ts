import type { Check, Config } from 'mountkeeper';
import { notices } from './config.ts';

export function checks({ notifications }: Config): readonly Check[] {
  return notices(notifications).map(({ message }) => ({
    title: 'Notifications',
    result: 'error',
    detail: message,
    advice: 'Name another receiver, or set notifications.allow_private = true.',
  }));
}
