BEGIN TRANSACTION;
CREATE TABLE events (
        chain TEXT NOT NULL,       -- the host that recorded it
        number INTEGER NOT NULL,   -- its place in the chain, from 1
        at INTEGER NOT NULL,       -- microseconds since 1970
        kind TEXT NOT NULL,
        body TEXT NOT NULL,        -- JSON with digests instead of arguments and results
        hash BLOB NOT NULL,        -- of all this, and of the hash of the event before
        PRIMARY KEY (chain, number)
    ) WITHOUT ROWID;
INSERT INTO "events" VALUES('00993c9c80fa62a1',1,1794969168188017,'opened','{"pid":10831}',X'D86499814EB29643231D4566AF65694D5CCE027D53A582A78913855D790596F8');
INSERT INTO "events" VALUES('00993c9c80fa62a1',2,1794969168188017,'linked','{"heads":{}}',X'7A9DBF4B9DA3D495D8CF699C69A8193D6B9231B0903888586D6ADEE2A85C192F');
INSERT INTO "events" VALUES('00993c9c80fa62a1',3,1794969168188353,'run-started','{"agent":"default","run":"00000000000000000000000000000000"}',X'B84A32C8E272B913F473FFC499DAB4530B4EA17B3A6F1178FE13E298A901C887');
INSERT INTO "events" VALUES('00993c9c80fa62a1',4,1794969168188387,'call-started','{"run":"00000000000000000000000000000000"}',X'B4D82CD3A991672CC4775004C1F2E18911AAC60DB4ED76F9F93378F61A1F23D0');
INSERT INTO "events" VALUES('00993c9c80fa62a1',5,1794969168194231,'closed','{}',X'EA06A0D8ED5EA8F4F8BCEA2418C2EF8E1422E1273F3C1629B26B0FFE08AB63C8');
CREATE TABLE payloads (
        digest BLOB PRIMARY KEY,   -- of the content
        content BLOB NOT NULL,     -- arguments or a result, as JSON; retention may delete it
        at INTEGER NOT NULL
    ) WITHOUT ROWID;
CREATE INDEX events_by_time ON events (at);
COMMIT;
PRAGMA user_version = 1;
