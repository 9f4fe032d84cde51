/** Why a file waits, as the queue says it, with its moments in the reader's own form and time zone. */
import type { Content, View } from 'mountkeeper';

/** As the API says them. */
const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

export function reasonText(reason: string, view: View): Content {
  return view
    .said(reason)
    .split(MOMENT)
    .map((part, index) => (index % 2 === 0 ? part : view.time(Date.parse(part))));
}
